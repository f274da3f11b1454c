package dev.espha;

import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.CsvToStructs;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Columns with the values in CSV and JSON text, as from_csv and from_json of Spark.
 *
 * <p>Those read the types from text, too: the parser of SQL is a seventh of what an engine's start
 * costs in processor time.
 */
public final class Parsed {

  private Parsed() {}

  /** Returns a struct of CSV text; the schema is in the JSON of Spark's types. */
  public static Column csv(Column text, String schema, Map<String, String> options) {
    StructType type = (StructType) DataType.fromJson(schema);
    return column(
        new CsvToStructs(type, immutable(options), expression(text), Option.empty(), Option.empty()));
  }

  /** Returns a struct of JSON text; the schema is in the JSON of Spark's types. */
  public static Column json(Column text, String schema, Map<String, String> options) {
    DataType type = DataType.fromJson(schema);
    return column(
        new JsonToStructs(type, immutable(options), expression(text), Option.empty(), false));
  }

  private static Expression expression(Column column) {
    return ExpressionUtils.expression(column);
  }

  private static Column column(Expression expression) {
    return ExpressionUtils.column(expression);
  }

  private static scala.collection.immutable.Map<String, String> immutable(
      Map<String, String> map) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(map));
  }
}
