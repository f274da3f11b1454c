package dev.espha;

import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/**
 * Kafka's Admin client, which fences a transactional id in milliseconds.
 *
 * <p>There is one in a JVM, so that the launcher can end what a dead engine has begun: a fence that
 * came late would shut out the successor.
 */
public final class Fence {

  private static Admin admin;

  private Fence() {}

  /**
   * Connects now, not in a take-over.
   *
   * @throws ExecutionException the brokers do not answer
   */
  public static void open(Properties properties) throws InterruptedException, ExecutionException {
    renewed(properties).describeCluster().clusterId().get();
  }

  private static synchronized Admin renewed(Properties properties) {
    end();
    admin = Admin.create(properties);
    return admin;
  }

  /**
   * Aborts the id's open transaction and shuts out its holder.
   *
   * @throws ExecutionException the brokers did not answer
   */
  public static void fence(String transactionalId) throws InterruptedException, ExecutionException {
    current().fenceProducers(Set.of(transactionalId)).all().get();
  }

  private static synchronized Admin current() {
    return admin;
  }

  /** Drops the connections and whatever is under way. */
  public static synchronized void end() {
    if (admin != null) {
      admin.close(Duration.ZERO);
      admin = null;
    }
  }
}
