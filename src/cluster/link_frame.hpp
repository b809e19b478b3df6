// The bytes that two nodes send each other (docs/cluster.md "Frames"). A frame is one message of the bus: a head, and
// of kind `data` a piece of a stream of bytes, which is cut anywhere. The stream consists of records: JSON-RPC
// messages, and what a node says of its methods. Numbers are little-endian. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::cluster {

/// The version of all that nodes say to each other. Nodes of different versions see each other and do not call.
inline constexpr std::uint8_t kProtocolVersion = 1;

enum class FrameKind : std::uint8_t {
  open = 1,  ///< the sender has begun its session with the receiver
  data = 2,
  ping = 3,   ///< the payload comes back as it is
  pong = 4,   ///< brings it
  leave = 5,  ///< the sender goes
};

/// Of a link each side has a session, which it begins anew when anything was lost: all that was under way is over then.
struct FrameHead {
  FrameKind kind = FrameKind::open;
  std::uint64_t from_session = 0;
  std::uint64_t to_session = 0;  ///< the receiver's, as the sender knows it; 0 for not yet
  std::uint32_t sequence = 0;    ///< of data: how many of the session came before it
  std::string_view node;         ///< the sender: a word (subjects.hpp)
};

inline constexpr std::size_t kFrameHeadBytesMax = 4 + 8 + 8 + 4 + 63;

void append_frame_head(Buffer& out, const FrameHead& head);

struct Frame {
  FrameHead head;
  std::string_view payload;
};
/// Nothing for bytes that are no frame of this version. Views them.
[[nodiscard]] std::optional<Frame> read_frame(std::string_view bytes) noexcept;
/// Writes other numbers into a head that begins at `head`.
void renumber_frame(char* head, std::uint64_t to_session, std::uint32_t sequence) noexcept;

enum class RecordKind : std::uint8_t {
  call = 1,      ///< of a caller at the sender: a request, or what belongs to one
  answer = 2,    ///< to a caller at the receiver: a response, or what comes before one
  methods = 3,   ///< what clients of the sender provide
  topics = 4,    ///< what clients of the sender subscribe to
  event = 5,     ///< for those of the receiver's clients that subscribe to its topic
  retained = 6,  ///< what the sender knows of a topic's retained event
  clients = 7,   ///< the names of clients of the sender
};

struct RecordHead {
  static constexpr std::uint16_t kUnnamed = 0xFFFF;
  static constexpr std::uint32_t kNoTime = 0xFFFFFFFF;

  RecordKind kind = RecordKind::call;
  /// Of a call: who its principal is; empty where nobody has to authenticate. Of what belongs to a call nobody is
  /// named.
  /// Of an event: the group of which one is told; empty for those in none.
  std::optional<std::string_view> principal = {};
  std::uint32_t left_ms = kNoTime;  ///< of a call: the time that it has
  MessageForm form = {};            ///< of a call: in which its caller is answered
};

/// A record that is being written: what is appended to `out` after the constructor is its body.
class RecordWriter {
 public:
  RecordWriter(Buffer& out, const RecordHead& head);
  /// Ends the record. False where the body is longer than a record may be: then it is dropped. Throws std::bad_alloc.
  [[nodiscard]] bool close();
  void discard() noexcept { out_->truncate(start_); }

 private:
  Buffer* out_;
  std::size_t start_;
  std::size_t body_;
};

struct Record {
  RecordHead head;
  std::string_view body;  ///< a zero byte is behind it
};

/// What stands at the beginning of a stream.
struct RecordRead {
  enum class Status : std::uint8_t { complete, incomplete, malformed };
  Status status = Status::incomplete;
  std::size_t bytes = 0;  ///< of a complete record
  Record record;
};
/// A body of more than `body_bytes_max` is malformed. Views the bytes.
[[nodiscard]] RecordRead read_record(std::string_view stream, std::size_t body_bytes_max) noexcept;

}  // namespace wirecall::cluster
