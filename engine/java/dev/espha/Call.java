package dev.espha;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * One call of the query: its rows, and what becomes of those that answer them.
 *
 * <p>Either all answering rows go back as they are, in chunks; or those that are outputs of the
 * model are counted and digested, batch by batch, and sent in a transaction where there is one.
 *
 * <p>Rows are added by one thread, and answered by another one.
 */
final class Call {

  /** Kinds of answering rows that are no outputs; see stream.py. */
  private static final int OPENED = -1;

  private static final int REFUSED = -2;
  private static final int LAST = -3;
  private static final int BROKEN = -5;
  private static final int MOVED = -6;
  private static final int NONE = -1;

  /** Mark of a row that is set aside. */
  private static final int SKIP = -7;

  private static final int CHUNK_BYTES = 1 << 20;
  private static final byte[] NOTHING = {};
  private static final int SOURCE_AT = 4;
  private static final int OFFSET_AT = 8;
  private static final int LENGTH_AT = 16;

  /** Source and value of a row, where they are not what the row says. */
  private record Original(int source, byte[] value) {}

  /** Takes chunks of an answer while the call goes on. */
  interface Chunks {
    void take(byte[] rows) throws IOException;
  }

  private final Names names;
  private final Outputs into;
  private final Chunks chunks;
  private final CountDownLatch ended = new CountDownLatch(1);
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final DataOutputStream out = new DataOutputStream(bytes);
  private final MessageDigest digest = sha256();
  private final byte[] number = new byte[Long.BYTES];

  private final List<ByteBuffer> parts = new ArrayList<>();
  /** Written by the channel's thread while Spark's thread reads those of earlier parts. */
  private final Map<Integer, Original> originals = new ConcurrentHashMap<>();

  /** For each row: which part it is in, times 2^32, and where there. */
  private long[] places = new long[64];

  private int rows;
  private int outputs;
  private int refused;
  private volatile long moved;

  /** Whether an output is being handed over, which lasts as long as Kafka's client has no room. */
  private volatile boolean handsOver;

  private long waitedNs;

  /** What {@link #hasMoved} has seen of it. */
  private long seen;

  /**
   * Makes a call.
   *
   * @param names of topics and windows
   * @param into gets the outputs; null: nobody does
   * @param chunks gets all rows as they are; null: they are counted and digested
   */
  Call(Names names, Outputs into, Chunks chunks) {
    this.names = names;
    this.into = into;
    this.chunks = chunks;
    move();
  }

  /** Notes the value of a row as it came, where that is no text, or is set aside. */
  void original(int row, int source, byte[] value) {
    originals.put(row, new Original(source, value));
  }

  /** Notes where the rows of a part are. */
  void add(byte[] encoded) {
    ByteBuffer part = ByteBuffer.wrap(encoded);
    int at = 0;
    while (at < encoded.length) {
      if (part.getInt(at) == rows && part.getInt(at + SOURCE_AT) != BatchSource.PAD) {
        if (rows == places.length) {
          places = Arrays.copyOf(places, 2 * rows);
        }
        places[rows++] = (long) parts.size() << 32 | at;
      }
      at += BatchSource.HEAD_BYTES + part.getInt(at + LENGTH_AT);
    }
    parts.add(part);
    move();
    seen = moved;
  }

  /** Processes an answering row; says whether it was the last one. */
  boolean answer(InternalRow row) throws IOException {
    move();
    int kind = row.getInt(2);
    if (kind == MOVED) {
      return false;
    }
    if (kind == LAST) {
      ended.countDown();
      return true;
    }
    byte[] text = row.isNullAt(3) ? null : row.getUTF8String(3).getBytes();
    if (chunks != null) {
      write(row.getInt(0), row.getInt(1), kind, text);
    } else if (kind == OPENED) {
      sum(NONE, text);
    } else if (kind == BROKEN) {
      sum(row.getInt(0), text);
    } else {
      output(row.getInt(0), row.getInt(1), kind, text);
    }
    return false;
  }

  private void write(int row, int ordinal, int kind, byte[] text) throws IOException {
    out.writeInt(row);
    out.writeInt(ordinal);
    out.writeInt(kind);
    out.writeInt(text == null ? -1 : text.length);
    if (text != null) {
      out.write(text);
    }
    if (bytes.size() >= CHUNK_BYTES) {
      chunks.take(bytes.toByteArray());
      bytes.reset();
    }
  }

  /** Ends a batch: outputs, dead letters, digest, waits for room, and what the worker says. */
  private void sum(int broken, byte[] text) throws IOException {
    out.writeInt(broken);
    out.writeInt(outputs);
    out.writeInt(refused);
    out.write(digest.digest());
    out.writeLong(waitedNs);
    out.writeInt(text.length);
    out.write(text);
    outputs = 0;
    refused = 0;
    waitedNs = 0;
  }

  private void output(int row, int ordinal, int kind, byte[] answer) {
    ByteBuffer part = parts.get((int) (places[row] >> 32));
    int at = (int) places[row];
    Original original = originals.get(row);
    int source = original == null ? part.getInt(at + SOURCE_AT) : original.source();
    // What time alone brings about comes from the order record, not from an input.
    String origin = source < 0 ? names.orderLog() : names.inputs()[source];
    byte[] id = bytes(origin + ':' + part.getLong(at + OFFSET_AT) + ':' + ordinal);
    byte[] text = answer == null ? NOTHING : answer;
    outputs++;
    if (kind == REFUSED) {
      byte[] window = source < 0 ? NOTHING : bytes(names.windows()[source]);
      byte[] value = original != null ? original.value() : source < 0 ? NOTHING : value(part, at);
      boolean aside = part.getInt(at + SOURCE_AT) == SKIP;
      refuse(value, id, window, text, !aside || value.length <= names.cutBytes());
    } else if (fits(text, id)) {
      hand(names.outputs()[kind], text, id);
    } else {
      String reason = "the output has %d bytes, %d at most can be written";
      byte[] why = bytes(String.format(Locale.ROOT, reason, size(text, id), names.recordBytes()));
      refused++;
      cut(text, id, bytes(names.outputWindows()[kind]), why);
    }
  }

  /** Writes a dead letter where it may be whole and fits, or what is left; see fitting.py. */
  private void refuse(byte[] value, byte[] id, byte[] window, byte[] reason, boolean whole) {
    refused++;
    if (whole && fits(value, id, window, reason)) {
      hand(names.deadLetters(), value, id, window, reason);
    } else {
      cut(value, id, window, start(reason, names.reasonBytes()));
    }
  }

  private void cut(byte[] value, byte[] id, byte[] window, byte[] reason) {
    byte[] size = bytes(Integer.toString(value.length));
    byte[] sum = bytes(HexFormat.of().formatHex(sha256().digest(value)));
    hand(names.deadLetters(), start(value, names.cutBytes()), id, window, reason, size, sum);
  }

  private static byte[] start(byte[] value, int length) {
    return value.length <= length ? value : Arrays.copyOf(value, length);
  }

  private boolean fits(byte[] value, byte[]... headers) {
    return size(value, headers) <= names.recordBytes();
  }

  private int size(byte[] value, byte[]... headers) {
    int size = value.length;
    for (int place = 0; place < headers.length; place++) {
      size += headers[place].length + bytes(names.headers().get(place)).length;
    }
    return size;
  }

  private static byte[] value(ByteBuffer part, int at) {
    int start = at + BatchSource.HEAD_BYTES;
    return Arrays.copyOfRange(part.array(), start, start + part.getInt(at + LENGTH_AT));
  }

  /** Digests a record: topic, value and headers, each behind its length; and passes it on. */
  private void hand(String topic, byte[] value, byte[]... headers) {
    digest(bytes(topic));
    digest(value);
    for (int place = 0; place < headers.length; place++) {
      digest(bytes(names.headers().get(place)));
      digest(headers[place]);
    }
    if (into != null) {
      long began = System.nanoTime();
      handsOver = true;
      try {
        into.send(topic, value, names.headers(), List.of(headers));
      } finally {
        handsOver = false;
        waitedNs += System.nanoTime() - began;
      }
    }
  }

  private void digest(byte[] part) {
    digest.update(ByteBuffer.wrap(number).putLong(0, part.length).array());
    digest.update(part);
  }

  /** Tells whether all has been answered, waiting a while for it. */
  boolean hasEnded(long waitMs) throws InterruptedException {
    return ended.await(waitMs, java.util.concurrent.TimeUnit.MILLISECONDS);
  }

  /**
   * Tells whether something was answered since this was asked last, or since rows were added; or
   * whether Kafka's client has no room, for which it waits no longer than its own limit.
   */
  boolean hasMoved() {
    long now = moved;
    boolean moves = now != seen || handsOver;
    seen = now;
    return moves;
  }

  /** Returns how long (ms) nothing has moved. */
  long stillMs() {
    return (System.nanoTime() - moved) / 1_000_000;
  }

  /** Returns what has been written and not been taken, when all has been answered. */
  byte[] rest() {
    return bytes.toByteArray();
  }

  private void move() {
    moved = System.nanoTime();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
