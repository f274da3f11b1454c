package dev.espha;

import java.io.IOException;
import java.util.Iterator;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * A query over {@link BatchSource} that runs as one Spark job for ever, one call after the other.
 *
 * <p>Planning, scheduling and starting a job cost many times what a small batch costs. So the job
 * is started once: it waits for rows, and answers call by call.
 *
 * <p>The query has the columns row, ordinal, kind (int) and text (string, may be null); a {@link
 * Call} knows what they mean.
 */
public final class BatchStream {

  private static final long LOOK_MS = 200;
  private static final long END_MS = 10_000;

  /** Is told now and then that a call which takes long gets on. */
  interface Moves {
    void tell() throws IOException;
  }

  private static BatchStream current;
  private static String plannedName;
  private static JavaRDD<InternalRow> planned;

  /** Whose rows come now. */
  private static volatile Call call;

  private final JavaFutureAction<Void> job;

  private BatchStream(JavaRDD<InternalRow> query) {
    job = query.foreachPartitionAsync(new Answer());
  }

  /**
   * Plans a query, keeps it under a name, and starts the job.
   *
   * @throws TimeoutException the job before does not end
   */
  public static synchronized void open(String name, Dataset<Row> query)
      throws InterruptedException, TimeoutException {
    planned = query.queryExecution().toRdd().toJavaRDD();
    plannedName = name;
    reopen(name);
  }

  /**
   * Starts the job of the query that was planned last; there is one job at a time, and this ends
   * the one before.
   *
   * @return false: that query had another name
   * @throws TimeoutException the job before does not end
   */
  public static synchronized boolean reopen(String name)
      throws InterruptedException, TimeoutException {
    if (!name.equals(plannedName)) {
      return false;
    }
    end();
    current = new BatchStream(planned);
    return true;
  }

  /**
   * Ends the job, if there is one, whatever it is doing and whoever has begun it.
   *
   * @throws TimeoutException it does not end
   */
  public static synchronized void end() throws InterruptedException, TimeoutException {
    call = null;
    long limit = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(END_MS);
    while (current != null && !current.job.isDone()) {
      if (System.nanoTime() > limit) {
        throw new TimeoutException("the job does not end");
      }
      BatchSource.end();
      TimeUnit.MILLISECONDS.sleep(1);
    }
    current = null;
    BatchSource.clear();
  }

  static synchronized BatchStream running() {
    if (current == null) {
      throw new IllegalStateException("no query runs");
    }
    return current;
  }

  /** Begins a call. */
  void begin(Call next) {
    call = next;
  }

  /**
   * Brings rows of the call that has been begun; there may be no room for them for long.
   *
   * @throws ExecutionException the job has failed
   * @throws TimeoutException nothing has moved for so long
   */
  void put(byte[] rows, long limitMs, Moves moves)
      throws IOException, InterruptedException, ExecutionException, TimeoutException {
    Call now = call;
    now.add(rows);
    while (!BatchSource.offer(rows, LOOK_MS)) {
      expectMoving(now, limitMs, moves);
    }
  }

  /**
   * Waits until the call is answered.
   *
   * @throws ExecutionException the job has failed
   * @throws TimeoutException nothing has moved for so long
   */
  void finish(long limitMs, Moves moves)
      throws IOException, InterruptedException, ExecutionException, TimeoutException {
    Call now = call;
    while (!now.hasEnded(LOOK_MS)) {
      expectMoving(now, limitMs, moves);
    }
  }

  private void expectMoving(Call now, long limitMs, Moves moves)
      throws IOException, InterruptedException, ExecutionException, TimeoutException {
    if (job.isDone()) {
      job.get();
      throw new IllegalStateException("the job has ended");
    }
    if (now.stillMs() > limitMs) {
      throw new TimeoutException("the query has not moved for " + now.stillMs() + " ms");
    }
    if (now.hasMoved()) {
      moves.tell();
    }
  }

  private static final class Answer implements VoidFunction<Iterator<InternalRow>> {
    private static final long serialVersionUID = 2;

    @Override
    public void call(Iterator<InternalRow> rows) throws IOException {
      Call now = null;
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        now = now == null ? call : now;
        if (now == null || now.answer(row)) {
          now = null;
        }
      }
    }
  }
}
