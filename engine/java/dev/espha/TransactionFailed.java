package dev.espha;

/** Nothing was committed, or nobody knows; the text says what failed. */
final class TransactionFailed extends Exception {
  private static final long serialVersionUID = 1;

  /** Whether a newer holder of the transactional id is why. */
  final boolean fenced;

  TransactionFailed(String text, boolean fenced, Throwable cause) {
    super(text, cause);
    this.fenced = fenced;
  }
}
