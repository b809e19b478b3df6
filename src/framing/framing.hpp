// Framing: where messages begin and end in a stream of bytes, and how ours are set apart from each other. A framing
// knows nothing of what a message means, allocates nothing that grows with the input, keeps no bytes of it and does no
// I/O: it is fed what has arrived, each byte once, and says what that is. Whoever feeds it keeps the parts of messages.
// One framing serves one direction of one connection, on its thread.
//
// Head-room: a framing with a prefix has `head_bytes` reserved before each outgoing message, and fills them in `seal`
// once the message's length is known. One with a suffix names it, and whoever sends appends it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framing/message_deflate.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::framing {

enum class Find : std::uint8_t {
  nothing,    ///< `skip` bytes of separators or of a prefix; nothing is to be kept
  part,       ///< all bytes from `skip` on belong to a message that has not ended: keep them
  message,    ///< a message, or the last part of one, from `skip` on, `size` bytes
  packed,     ///< a message like that, which is to be unpacked by `unpack`
  text,       ///< the same of one that the framing says to be text, and so JSON
  opening,    ///< a message begins at `skip`; the codec will find its end
  malformed,  ///< after `skip`, `size` bytes of a message, and then a byte that no message has there
  too_deep,   ///< the same, because that byte nests too deep
  too_large,  ///< a message of more than max_message_size begins at `skip`
  lost,       ///< nothing that follows can be understood any more
  due,        ///< after `skip` bytes, something is to be sent that is no message: `take_due`
  over,       ///< after `skip` bytes, the peer has said that nothing follows, and that it wants nothing more
};

/// Two registers wide, since one is returned for every message; so an input has less than 4 GiB.
struct Found {
  Find find = Find::nothing;
  std::uint32_t skip = 0;
  std::size_t size = 0;
};

/// Why we end a connection, where the framing tells its peer.
enum class Ending : std::uint8_t {
  done,        ///< nothing is left to be said
  going_away,  ///< we are shutting down
  refused,     ///< the peer may not stay
  too_large,   ///< a message over max_message_size
  unreadable,  ///< what it sent cannot be understood
  failed,      ///< by a failure of our own
};

/// How reading goes on after a message that cannot be understood.
enum class Recovery : std::uint8_t {
  resume,         ///< behind the message, whose end is known: nothing else is lost
  resynchronise,  ///< at the offending byte, from which `next` looks for a position to start again
  close,          ///< not at all
};

class Framing {
 public:
  virtual ~Framing() = default;

  /// What the next bytes of the stream are. `input` is not empty; `skip + size` of it count as seen (with `opening`:
  /// only `skip`). These may be changed: into what was meant, where it was sent in disguise.
  virtual Found next(std::span<char> input) = 0;
  /// After `opening`, for framings that leave the end to the codec; others return `lost`. The codec has found no end in
  /// `input`, the bytes from there to the end of what has arrived. They are seen with this call, and `next` continues
  /// the message.
  virtual Found unfinished(std::string_view input) = 0;
  /// After `opening` or `message`, where the codec refused a byte, and after malformed and too_deep. `read` is the part
  /// of the message that lies before the offending byte in the last input.
  virtual Recovery recover(std::string_view read) = 0;
  /// No bytes follow. `message` of size 0: what has been kept is a message after all; `malformed`: it never became one.
  virtual Found end_of_stream() = 0;

  /// Its name for people, in a word; a constant. Empty for what carries no messages.
  [[nodiscard]] virtual std::string_view name() const noexcept { return {}; }
  /// In a few words, why what was found last is malformed, where that is not the byte behind it; else empty.
  [[nodiscard]] virtual std::string_view cause() const noexcept { return {}; }

  /// In a sentence, how the peer has ended the connection, or broken its protocol; empty where it has not, or there is
  /// nothing to say of it. Throws std::bad_alloc.
  [[nodiscard]] virtual std::string failure() const { return {}; }

  /// Something of a message has been seen that is no part of it, as its header.
  [[nodiscard]] virtual bool begun() const noexcept { return false; }
  /// Between the first byte of what stands before a message, a header or its length, and the last one.
  [[nodiscard]] virtual bool in_head() const noexcept { return false; }
  /// Whether a message may be lost on its way, so that one which cannot be read is no worse than one that never came.
  [[nodiscard]] virtual bool may_lose_messages() const noexcept { return false; }
  /// Whether peers on it may refuse requests with members that JSON-RPC does not name.
  [[nodiscard]] virtual bool strict_peers() const noexcept { return false; }
  /// Whether a message may be of any bytes, since it does not end by what it is.
  [[nodiscard]] virtual bool carries_binary() const noexcept { return false; }
  /// Whether peers on it may read a message as one line. Then there is no head-room.
  [[nodiscard]] virtual bool sends_lines() const noexcept { return false; }
  /// Bytes to reserve before each outgoing message; always the same.
  [[nodiscard]] virtual std::size_t head_bytes() const noexcept { return 0; }
  /// What follows each outgoing message; always the same, and outlives the framing.
  [[nodiscard]] virtual std::string_view tail() const noexcept { return {}; }
  /// `out` ends with an outgoing message, head-room included and without its tail, that begins at `begin`; `json` says
  /// whether it is JSON. It may make the head shorter and move the message. Called only where there is head-room.
  virtual void seal(Buffer& out, std::size_t begin, bool json) {
    static_cast<void>(out), static_cast<void>(begin), static_cast<void>(json);
  }

  /// Appends to `out` what `packed` stands for, the whole of a message that was found so, as MessageDeflate::inflate.
  [[nodiscard]] virtual MessageDeflate::Outcome unpack(std::string_view packed, std::size_t bytes_max, Buffer& out) {
    static_cast<void>(packed), static_cast<void>(bytes_max), static_cast<void>(out);
    return MessageDeflate::Outcome::malformed;
  }
  /// What has been found then, `message`, `text`, `lost` or `too_large`: `text` is what it stands for, as far as the
  /// outcome is done.
  virtual Find unpacked(MessageDeflate::Outcome outcome, std::string_view text) {
    static_cast<void>(outcome), static_cast<void>(text);
    return Find::lost;
  }
  /// What `due` spoke of, to be sent as it is. Valid until the next call of anything here.
  [[nodiscard]] virtual std::string_view take_due() { return {}; }
  /// What has a peer say something, to be sent as it is; empty where there is no such thing.
  [[nodiscard]] virtual std::string_view keepalive() { return {}; }
  /// Whether the peer is told by `farewell` what was wrong with its input, and not by an error.
  [[nodiscard]] virtual bool has_farewell() const noexcept { return false; }
  /// What is sent as the last of all, as it is; empty where there is no such thing, or it has been had. What is sealed
  /// after it is dropped.
  [[nodiscard]] virtual std::string_view farewell(Ending why) {
    static_cast<void>(why);
    return {};
  }
};

}  // namespace wirecall::framing
