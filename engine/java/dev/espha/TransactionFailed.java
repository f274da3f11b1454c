package dev.espha;

/** Nothing was committed, or nobody knows; the text says what failed. */
final class TransactionFailed extends Exception {
  private static final long serialVersionUID = 2;

  /** What is known of the reason. */
  enum Why {
    UNKNOWN,
    /** A newer holder of the transactional id, or brokers that have waited for too long. */
    FENCED,
    /** A record that the client or a broker does not take, whoever writes it. */
    TOO_LARGE
  }

  final Why why;

  TransactionFailed(String text, Why why, Throwable cause) {
    super(text, cause);
    this.why = why;
  }
}
