package dev.espha;

import java.util.Properties;

/**
 * Fences and commits on a scratch topic now and then, under an id of one's own.
 *
 * <p>A standby may have nothing to commit for days. Then its connections are closed, and its code
 * is cold, at the very moment when it takes over.
 */
final class Rehearsal extends Thread {

  private static Rehearsal current;

  private final Properties properties;
  private final String topic;
  private final long pauseMs;

  private Rehearsal(Properties properties, String topic, long pauseMs) {
    super("espha-rehearsal");
    setDaemon(true);
    this.properties = properties;
    this.topic = topic;
    this.pauseMs = pauseMs;
  }

  /** Begins; what was begun before ends. */
  static synchronized void begin(Properties properties, String topic, long pauseMs) {
    end();
    current = new Rehearsal(properties, topic, pauseMs);
    current.start();
  }

  /** Ends. */
  static synchronized void end() {
    if (current != null) {
      current.interrupt();
      current = null;
    }
  }

  /** Rehearses; returns the brokers' version of transactions. */
  static int once(Properties properties, String topic, int rounds)
      throws TransactionFailed, InterruptedException {
    int version = Transactions.version(properties);
    Transactions transactions = new Transactions(properties);
    try {
      transactions.rehearse(topic, rounds);
    } finally {
      transactions.close();
    }
    return version;
  }

  @Override
  public void run() {
    try {
      while (true) {
        Thread.sleep(pauseMs);
        try {
          once(properties, topic, 1);
        } catch (TransactionFailed e) {
          // Brokers are away; the next time may be better.
        }
      }
    } catch (InterruptedException | RuntimeException e) {
      // It was ended; in the middle of something Kafka says so in its own way.
    }
  }
}
