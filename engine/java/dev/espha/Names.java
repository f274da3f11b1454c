package dev.espha;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * What a model's outputs need to be written.
 *
 * @param inputs topics of source windows
 * @param windows paths of source windows
 * @param outputs topics of output windows
 * @param outputWindows paths of output windows
 * @param orderLog topic
 * @param deadLetters topic
 * @param headers names: of an output's id; of a dead letter's window and reason; of the size and
 *     the digest of what was too large
 * @param recordBytes largest record, headers counted in
 * @param cutBytes what is left of a value that is too large
 * @param reasonBytes what is left of a reason then
 */
record Names(
    String[] inputs,
    String[] windows,
    String[] outputs,
    String[] outputWindows,
    String orderLog,
    String deadLetters,
    List<String> headers,
    int recordBytes,
    int cutBytes,
    int reasonBytes) {

  static Names read(DataInputStream in) throws IOException {
    return new Names(
        texts(in),
        texts(in),
        texts(in),
        texts(in),
        text(in),
        text(in),
        List.of(texts(in)),
        in.readInt(),
        in.readInt(),
        in.readInt());
  }

  /** Reads how many texts there are, and each. */
  static String[] texts(DataInputStream in) throws IOException {
    String[] every = new String[in.readInt()];
    for (int place = 0; place < every.length; place++) {
      every[place] = text(in);
    }
    return every;
  }

  static String text(DataInputStream in) throws IOException {
    return new String(bytes(in), StandardCharsets.UTF_8);
  }

  /** Reads how many bytes there are, and these. */
  static byte[] bytes(DataInputStream in) throws IOException {
    return in.readNBytes(in.readInt());
  }
}
