package dev.espha;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Requests of a {@link Channel} that concern {@link Transactions}. */
final class Requests {

  private static final byte OPEN = 6;
  private static final byte LEARN = 7;
  private static final byte REHEARSE = 8;
  private static final byte FENCE = 9;
  private static final byte SEND = 10;
  private static final byte COMMIT = 11;
  private static final byte CLOSE = 12;
  private static final byte OPEN_ON = 13;

  private static final byte[] NOTHING = {};

  private Requests() {}

  /** Does what is asked for. */
  static byte[] answer(byte wanted, DataInputStream in)
      throws IOException, TransactionFailed, InterruptedException {
    if (wanted == OPEN) {
      return number(new Transactions(properties(in)).number);
    }
    if (wanted == REHEARSE) {
      return rehearse(properties(in), Names.text(in), in.readInt(), in.readInt(), in.readInt());
    }
    if (wanted == OPEN_ON) {
      return String.join("\n", Transactions.openOn(properties(in), Names.text(in)))
          .getBytes(StandardCharsets.UTF_8);
    }
    Transactions transactions = Transactions.numbered(in.readInt());
    switch (wanted) {
      case LEARN:
        transactions.learn(List.of(Names.texts(in)));
        return NOTHING;
      case FENCE:
        Rehearsal.lead();
        transactions.fence();
        return NOTHING;
      case SEND:
        send(transactions, in);
        return NOTHING;
      case COMMIT:
        return number(commit(transactions, in));
      case CLOSE:
        transactions.close();
        return NOTHING;
      default:
        throw new IllegalArgumentException("no such request: " + wanted);
    }
  }

  private static long commit(Transactions transactions, DataInputStream in)
      throws IOException, TransactionFailed, InterruptedException {
    long least = in.readLong();
    long most = in.readLong();
    return transactions.commit(Names.text(in), in.readAllBytes(), least, most);
  }

  private static byte[] rehearse(
      Properties properties, String topic, int rounds, int later, int pauseMs)
      throws TransactionFailed, InterruptedException {
    try {
      return number(Rehearsal.once(properties, topic, rounds));
    } finally {
      Rehearsal.begin(properties, topic, later, pauseMs);
    }
  }

  private static Properties properties(DataInputStream in) throws IOException {
    Properties properties = new Properties();
    String[] every = Names.texts(in);
    for (int place = 0; place < every.length; place += 2) {
      properties.setProperty(every[place], every[place + 1]);
    }
    return properties;
  }

  private static void send(Transactions transactions, DataInputStream in) throws IOException {
    String topic = Names.text(in);
    byte[] value = Names.bytes(in);
    List<String> names = new ArrayList<>();
    List<byte[]> values = new ArrayList<>();
    for (int left = in.readInt(); left > 0; left--) {
      names.add(Names.text(in));
      values.add(Names.bytes(in));
    }
    transactions.send(topic, value, names, values);
  }

  private static byte[] number(long value) {
    return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
  }
}
