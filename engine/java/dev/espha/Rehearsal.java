package dev.espha;

import java.util.Properties;

/**
 * Fences and commits on a scratch topic, under an id of one's own: often until Java has compiled
 * what commits, and then now and then.
 *
 * <p>A standby may have nothing to commit for days. Then its connections are closed, and its code
 * is cold, at the very moment when it takes over. One whose JVM is young has never run that code
 * often enough: Java would compile all of it in the second behind the take-over.
 */
final class Rehearsal extends Thread {

  private static final long ROUND_MS = 40;

  private static Rehearsal current;

  /** How many of the first rounds this JVM has behind it, for whichever engine process. */
  private static int done;

  private final Properties properties;
  private final String topic;
  private final int rounds;
  private final long pauseMs;

  /** Whether this engine commits by itself, and so compiles what it needs. */
  private boolean leads;

  private Rehearsal(Properties properties, String topic, int rounds, long pauseMs) {
    super("espha-rehearsal");
    setDaemon(true);
    this.properties = properties;
    this.topic = topic;
    this.rounds = rounds;
    this.pauseMs = pauseMs;
  }

  /** Begins, with rounds until this JVM has so many behind it; what was begun before ends. */
  static synchronized void begin(Properties properties, String topic, int rounds, long pauseMs) {
    end();
    current = new Rehearsal(properties, topic, rounds, pauseMs);
    current.start();
  }

  /** Leaves out what is left of the first rounds: who leads has better things to do. */
  static synchronized void lead() {
    if (current != null) {
      current.leads = true;
    }
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
      transactions.fence();
      for (int round = 0; round < rounds; round++) {
        transactions.rehearse(topic);
      }
    } finally {
      transactions.close();
    }
    return version;
  }

  @Override
  public void run() {
    try {
      practise();
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

  /** Says whether one more of the first rounds is wanted, and counts it. */
  private boolean goesOn() {
    synchronized (Rehearsal.class) {
      return current == this && !leads && done++ < rounds;
    }
  }

  private void practise() throws InterruptedException {
    if (!goesOn()) {
      return;
    }
    Transactions transactions = new Transactions(properties);
    try {
      transactions.fence();
      do {
        Thread.sleep(ROUND_MS);
        transactions.rehearse(topic);
      } while (goesOn());
    } catch (TransactionFailed e) {
      // Brokers are away; a take-over is slower then, and that is all.
    } finally {
      transactions.close();
    }
  }
}
