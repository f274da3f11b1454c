package dev.espha;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A table without end: its rows are those that {@link #put} is given, page by page.
 *
 * <p>It works where driver and tasks share one JVM, that is with a local master.
 *
 * <p>Each row is, big-endian, two int32 (row, source), an int64 (which is for {@link Call}), an
 * int32 (length of the value in bytes) and the value in UTF-8.
 */
public final class BatchSource implements TableProvider {

  // Not as text: what reads types from text is a seventh of what an engine's start costs.
  private static final StructType SCHEMA =
      new StructType()
          .add("row", DataTypes.IntegerType)
          .add("source", DataTypes.IntegerType)
          .add("value", DataTypes.StringType);

  /** What stands before each value. */
  static final int HEAD_BYTES = 20;

  /** Source of rows that mean nothing; see stream.py. */
  static final int PAD = -3;

  private static final BlockingQueue<byte[]> WAITING = new ArrayBlockingQueue<>(1);

  /** Appends rows to the table; false: there was no room in that time. */
  static boolean offer(byte[] encoded, long waitMs) throws InterruptedException {
    return WAITING.offer(encoded, waitMs, TimeUnit.MILLISECONDS);
  }

  /** Ends the table, unless rows wait that nobody has read. */
  static void end() {
    WAITING.offer(new byte[0]);
  }

  /** Forgets rows that nobody has read. */
  static void clear() {
    WAITING.clear();
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    return new BatchTable();
  }

  private static final class BatchTable implements Table, SupportsRead {
    @Override
    public String name() {
      return "batch";
    }

    @Override
    @SuppressWarnings("deprecation") // the interface still asks for it
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return BatchScan::new;
    }
  }

  private static final class BatchScan implements Scan, Batch {
    @Override
    public StructType readSchema() {
      return SCHEMA;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return new InputPartition[] {new AllRows()};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Readers();
    }
  }

  private static final class AllRows implements InputPartition {
    private static final long serialVersionUID = 1;
  }

  private static final class Readers implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new Reader();
    }
  }

  private static final class Reader implements PartitionReader<InternalRow> {
    private final GenericInternalRow row = new GenericInternalRow(3);
    private byte[] encoded = new byte[0];
    private ByteBuffer buffer = ByteBuffer.wrap(encoded);

    @Override
    public boolean next() throws IOException {
      while (buffer.remaining() < HEAD_BYTES) {
        take();
        if (encoded.length == 0) {
          return false;
        }
      }
      row.update(0, buffer.getInt());
      row.update(1, buffer.getInt());
      buffer.getLong();
      int length = buffer.getInt();
      row.update(2, UTF8String.fromBytes(encoded, buffer.position(), length));
      buffer.position(buffer.position() + length);
      return true;
    }

    private void take() throws IOException {
      try {
        encoded = WAITING.take();
      } catch (InterruptedException e) {
        throw new InterruptedIOException("the job was ended");
      }
      buffer = ByteBuffer.wrap(encoded);
    }

    @Override
    public InternalRow get() {
      return row;
    }

    @Override
    public void close() {}
  }
}
