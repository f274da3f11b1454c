package dev.espha;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * A query over {@link BatchSource} that runs as one Spark job for ever, one batch after the other.
 *
 * <p>Planning, scheduling and starting a job cost many times what a small batch costs. So the job
 * is started once: it waits for rows, and answers batch by batch.
 *
 * <p>The query has the columns row, ordinal, kind (int) and text (string, may be null); a row of
 * kind {@link #LAST} ends the answer to a batch. An answer is, for each row, these four: three
 * big-endian int32, the text's length in bytes as a fourth (-1: null), and the text in UTF-8.
 */
public final class BatchStream {

  /** Kind of the row that ends an answer. */
  public static final int LAST = -3;

  private static final BlockingQueue<byte[]> ANSWERS = new ArrayBlockingQueue<>(1);
  private static final long LOOK_MS = 200;
  private static final long END_MS = 10_000;

  private static BatchStream current;
  private static String plannedName;
  private static JavaRDD<Row> planned;

  private final JavaFutureAction<Void> job;

  private BatchStream(JavaRDD<Row> query) {
    job = query.foreachPartitionAsync(new Collect());
  }

  /**
   * Plans a query, keeps it under a name, and starts the job.
   *
   * @throws TimeoutException the job before does not end
   */
  public static synchronized BatchStream open(String name, Dataset<Row> query)
      throws InterruptedException, TimeoutException {
    planned = query.toJavaRDD();
    plannedName = name;
    return reopen(name);
  }

  /**
   * Starts the job of the query that was planned last; there is one job at a time, and this ends
   * the one before.
   *
   * @return null: that query had another name
   * @throws TimeoutException the job before does not end
   */
  public static synchronized BatchStream reopen(String name)
      throws InterruptedException, TimeoutException {
    if (!name.equals(plannedName)) {
      return null;
    }
    end();
    current = new BatchStream(planned);
    return current;
  }

  /**
   * Ends the job, if there is one, whatever it is doing and whoever has begun it.
   *
   * @throws TimeoutException it does not end
   */
  public static synchronized void end() throws InterruptedException, TimeoutException {
    long limit = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(END_MS);
    while (current != null && !current.job.isDone()) {
      if (System.nanoTime() > limit) {
        throw new TimeoutException("the job does not end");
      }
      BatchSource.end();
      ANSWERS.poll(1, TimeUnit.MILLISECONDS);
    }
    current = null;
    BatchSource.clear();
    ANSWERS.clear();
  }

  /**
   * Runs one batch and returns its answer.
   *
   * @throws ExecutionException the job has failed
   */
  public byte[] run(byte[] rows) throws InterruptedException, ExecutionException {
    BatchSource.put(rows);
    byte[] answer = null;
    while (answer == null) {
      answer = ANSWERS.poll(LOOK_MS, TimeUnit.MILLISECONDS);
      if (answer == null && job.isDone()) {
        job.get();
        throw new IllegalStateException("the job has ended");
      }
    }
    return answer;
  }

  private static final class Collect implements VoidFunction<Iterator<Row>> {
    private static final long serialVersionUID = 1;

    @Override
    public void call(Iterator<Row> rows) throws IOException, InterruptedException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      while (rows.hasNext()) {
        Row row = rows.next();
        write(row, out);
        if (row.getInt(2) == LAST) {
          ANSWERS.put(bytes.toByteArray());
          bytes.reset();
        }
      }
    }

    private static void write(Row row, DataOutputStream out) throws IOException {
      for (int column = 0; column < 3; column++) {
        out.writeInt(row.getInt(column));
      }
      if (row.isNullAt(3)) {
        out.writeInt(-1);
      } else {
        byte[] text = row.getString(3).getBytes(StandardCharsets.UTF_8);
        out.writeInt(text.length);
        out.write(text);
      }
    }
  }
}
