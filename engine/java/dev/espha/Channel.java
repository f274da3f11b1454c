package dev.espha;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * An engine process's way into this JVM: requests and answers on a socket, in turn.
 *
 * <p>py4j would write all bytes in base64, and hold them several times over.
 *
 * <p>A request is its length (int32), what it asks for (one byte) and its content; an answer is its
 * length, one byte for how it went, and its content. See channel.py.
 */
public final class Channel {

  private static final byte NAMES = 1;
  private static final byte CALL = 2;
  private static final byte ORIGINAL = 3;
  private static final byte ROWS = 4;
  private static final byte LAST_ROWS = 5;

  private static final byte DONE = 0;
  private static final byte MORE = 1;
  private static final byte FAILED = 2;
  private static final byte FENCED = 3;
  private static final byte BROKEN = 4;
  private static final byte MOVED = 5;
  private static final byte TOO_LARGE = 6;

  private static final int BUFFER_BYTES = 1 << 16;
  private static final int HEAD_BYTES = 5;
  private static final byte[] NOTHING = {};
  private static final Set<Channel> ALL = ConcurrentHashMap.newKeySet();

  private final Path folder = Files.createTempDirectory("espha");
  private final Path path = folder.resolve("channel");
  private final ServerSocketChannel door = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
  private final ByteBuffer input = ByteBuffer.allocateDirect(BUFFER_BYTES).limit(0);
  private volatile SocketChannel talk;

  private Names names;
  private Call call;
  private long limitMs;

  private Channel() throws IOException {
    door.bind(UnixDomainSocketAddress.of(path));
  }

  /** Returns the path of a new socket, to which one process can connect. */
  public static String open() throws IOException {
    Channel channel = new Channel();
    ALL.add(channel);
    Thread thread = new Thread(channel::serve, "espha-channel");
    thread.setDaemon(true);
    thread.start();
    return channel.path.toString();
  }

  /** Ends all. */
  public static void end() throws IOException {
    for (Channel each : List.copyOf(ALL)) {
      each.close();
    }
    Transactions.end();
  }

  private void close() throws IOException {
    ALL.remove(this);
    door.close();
    if (talk != null) {
      talk.close();
    }
    Files.deleteIfExists(path);
    Files.deleteIfExists(folder);
  }

  private void serve() {
    try {
      talk = door.accept();
      while (true) {
        ByteBuffer head = ByteBuffer.wrap(read(HEAD_BYTES));
        handle(head, read(head.getInt(0)));
      }
    } catch (IOException e) {
      // The process has ended, or it has closed its end, or `end` has closed ours.
    } finally {
      try {
        close();
      } catch (IOException e) {
        System.err.println("espha: " + e);
      }
    }
  }

  private byte[] read(int size) throws IOException {
    byte[] bytes = new byte[size];
    for (int at = 0; at < size; ) {
      if (!input.hasRemaining()) {
        input.clear();
        int count = talk.read(input);
        input.flip();
        if (count < 0) {
          throw new EOFException();
        }
      }
      int share = Math.min(size - at, input.remaining());
      input.get(bytes, at, share);
      at += share;
    }
    return bytes;
  }

  private synchronized void write(byte how, byte[] content) throws IOException {
    ByteBuffer all = ByteBuffer.allocate(HEAD_BYTES + content.length);
    all.putInt(content.length).put(how).put(content).flip();
    while (all.hasRemaining()) {
      talk.write(all);
    }
  }

  private void handle(ByteBuffer head, byte[] content) throws IOException {
    try {
      byte[] answer = answer(head.get(4), content);
      if (answer != null) {
        write(DONE, answer);
      }
    } catch (TransactionFailed e) {
      write(outcome(e.why), e.getMessage().getBytes(StandardCharsets.UTF_8));
    } catch (ExecutionException | TimeoutException | InterruptedException | RuntimeException | LinkageError e) {
      call = null;
      write(BROKEN, Texts.of(e).getBytes(StandardCharsets.UTF_8));
    }
  }

  private static byte outcome(TransactionFailed.Why why) {
    return switch (why) {
      case UNKNOWN -> FAILED;
      case FENCED -> FENCED;
      case TOO_LARGE -> TOO_LARGE;
    };
  }

  /** Does what is asked for; null: there is no answer yet. */
  private byte[] answer(byte wanted, byte[] content)
      throws IOException,
          TransactionFailed,
          ExecutionException,
          InterruptedException,
          TimeoutException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(content));
    switch (wanted) {
      case NAMES:
        names = Names.read(in);
        return NOTHING;
      case CALL:
        begin(in);
        return null;
      case ORIGINAL:
        call.original(in.readInt(), in.readInt(), in.readAllBytes());
        return null;
      case ROWS:
        if (call != null) {
          BatchStream.running().put(content, limitMs, this::moved);
        }
        return null;
      case LAST_ROWS:
        return call == null ? null : finish(content);
      default:
        return Requests.answer(wanted, in);
    }
  }

  private void moved() throws IOException {
    write(MOVED, NOTHING);
  }

  private void begin(DataInputStream in) throws IOException {
    boolean collecting = in.readBoolean();
    int number = in.readInt();
    limitMs = in.readLong();
    Outputs into = number == 0 ? null : Transactions.numbered(number);
    call = new Call(names, into, collecting ? rows -> write(MORE, rows) : null);
    BatchStream.running().begin(call);
  }

  private byte[] finish(byte[] rows)
      throws IOException, ExecutionException, InterruptedException, TimeoutException {
    BatchStream stream = BatchStream.running();
    stream.put(rows, limitMs, this::moved);
    stream.finish(limitMs, this::moved);
    byte[] rest = call.rest();
    call = null;
    return rest;
  }
}
