package dev.espha;

/** Says what went wrong. */
final class Texts {

  private static final int LENGTH = 1000;

  private Texts() {}

  /** Returns the messages of an exception and its causes, each once and with its kind. */
  static String of(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) {
      String said = String.valueOf(each.getMessage()).lines().findFirst().orElse("");
      if (text.indexOf(said) < 0 || text.length() == 0) {
        text.append(text.length() == 0 ? "" : "; ");
        text.append(each.getClass().getSimpleName()).append(": ").append(said);
      }
    }
    return text.length() > LENGTH ? text.substring(0, LENGTH) : text.toString();
  }
}
