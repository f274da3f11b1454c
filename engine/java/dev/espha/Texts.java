package dev.espha;

import java.util.List;

/** Says what went wrong. */
final class Texts {

  private static final int LENGTH = 1000;

  private Texts() {}

  /** Returns a message's first line; of Python's traceback the last one, too. */
  private static String gist(String message) {
    List<String> lines = message.lines().filter(line -> !line.isBlank()).toList();
    if (lines.isEmpty() || !lines.get(0).endsWith("Traceback (most recent call last):")) {
      return lines.isEmpty() ? "" : lines.get(0);
    }
    int last = lines.size() - 1;
    return lines.get(0) + " … " + lines.get(lines.get(last).contains("SQLSTATE") ? last - 1 : last);
  }

  /** Returns the messages of an exception and its causes, each once and with its kind. */
  static String of(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) {
      String said = gist(String.valueOf(each.getMessage()));
      if (text.indexOf(said) < 0 || text.length() == 0) {
        text.append(text.length() == 0 ? "" : "; ");
        text.append(each.getClass().getName()).append(": ").append(said);
      }
    }
    return text.length() > LENGTH ? text.substring(0, LENGTH) : text.toString();
  }
}
