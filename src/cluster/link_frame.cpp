// See link_frame.hpp.
#include "cluster/link_frame.hpp"

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>

#include "cluster/subjects.hpp"

namespace wirecall::cluster {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

namespace {

constexpr char kMark = 'W';
constexpr std::size_t kKindAt = 2;
constexpr std::size_t kNodeBytesAt = 3;
constexpr std::size_t kFromAt = 4;
constexpr std::size_t kToAt = 12;
constexpr std::size_t kSequenceAt = 20;
constexpr std::size_t kNodeAt = 24;

// kind, the form of a call's answer, bytes of the principal's name, milliseconds, bytes of the body.
constexpr std::size_t kFormAt = 1;
constexpr std::size_t kPrincipalBytesAt = 2;
constexpr std::size_t kLeftAt = 4;
constexpr std::size_t kBodyBytesAt = 8;
constexpr std::size_t kRecordHeadBytes = 12;

template <std::unsigned_integral Number>
void put(char* at, Number number) noexcept {
  std::memcpy(at, &number, sizeof number);
}

template <std::unsigned_integral Number>
Number get(std::string_view bytes, std::size_t at) noexcept {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// An encoding that all brokers have; of the two forms that a message of another than JSON has, `kNatively` is one.
constexpr unsigned char kNatively = 0x80;

char byte_of(MessageForm form) noexcept {
  if (form.sent > Encoding::protobuf) return 0;
  return static_cast<char>(static_cast<unsigned char>(form.sent) | (form.natively ? kNatively : 0));
}

MessageForm form_of(char byte) noexcept {
  const auto bits = static_cast<unsigned char>(byte);
  const auto encoding = static_cast<Encoding>(bits & ~kNatively);
  if (encoding > Encoding::protobuf) return {};
  return (bits & kNatively) != 0 ? MessageForm::native(encoding) : MessageForm::text(encoding);
}

}  // namespace

void append_frame_head(Buffer& out, const FrameHead& head) {
  char* const at = out.reserve(kNodeAt + head.node.size());
  at[0] = kMark;
  at[1] = static_cast<char>(kProtocolVersion);
  at[kKindAt] = static_cast<char>(head.kind);
  at[kNodeBytesAt] = static_cast<char>(head.node.size());
  put(at + kFromAt, head.from_session);
  put(at + kToAt, head.to_session);
  put(at + kSequenceAt, head.sequence);
  std::memcpy(at + kNodeAt, head.node.data(), head.node.size());
  out.grow(kNodeAt + head.node.size());
}

void renumber_frame(char* head, std::uint64_t to_session, std::uint32_t sequence) noexcept {
  put(head + kToAt, to_session);
  put(head + kSequenceAt, sequence);
}

std::optional<Frame> read_frame(std::string_view bytes) noexcept {
  if (bytes.size() < kNodeAt || bytes[0] != kMark || bytes[1] != static_cast<char>(kProtocolVersion))
    return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(bytes[kKindAt]);
  if (kind < static_cast<std::uint8_t>(FrameKind::open) || kind > static_cast<std::uint8_t>(FrameKind::leave))
    return std::nullopt;
  const std::size_t node_bytes = static_cast<unsigned char>(bytes[kNodeBytesAt]);
  if (bytes.size() - kNodeAt < node_bytes) return std::nullopt;
  const Frame frame{.head = {.kind = static_cast<FrameKind>(kind),
                             .from_session = get<std::uint64_t>(bytes, kFromAt),
                             .to_session = get<std::uint64_t>(bytes, kToAt),
                             .sequence = get<std::uint32_t>(bytes, kSequenceAt),
                             .node = bytes.substr(kNodeAt, node_bytes)},
                    .payload = bytes.substr(kNodeAt + node_bytes)};
  if (!is_word(frame.head.node) || frame.head.from_session == 0) return std::nullopt;
  return frame;
}

RecordWriter::RecordWriter(Buffer& out, const RecordHead& head) : out_(&out), start_(out.size()) {
  const std::string_view name = head.principal.value_or(std::string_view{});
  char* const at = out.reserve(kRecordHeadBytes + name.size());
  at[0] = static_cast<char>(head.kind);
  at[kFormAt] = byte_of(head.form);
  put(at + kPrincipalBytesAt, head.principal ? static_cast<std::uint16_t>(name.size()) : RecordHead::kUnnamed);
  put(at + kLeftAt, head.left_ms);
  put(at + kBodyBytesAt, std::uint32_t{0});
  if (!name.empty()) std::memcpy(at + kRecordHeadBytes, name.data(), name.size());
  out.grow(kRecordHeadBytes + name.size());
  body_ = out.size();
}

bool RecordWriter::close() {
  const std::size_t bytes = out_->size() - body_;
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    discard();
    return false;
  }
  put(out_->data() + start_ + kBodyBytesAt, static_cast<std::uint32_t>(bytes));
  out_->push_back('\0');
  return true;
}

RecordRead read_record(std::string_view stream, std::size_t body_bytes_max) noexcept {
  RecordRead read;
  if (stream.size() < kRecordHeadBytes) return read;
  const auto malformed = [&read] {
    read.status = RecordRead::Status::malformed;
    return read;
  };
  const auto kind = static_cast<std::uint8_t>(stream[0]);
  if (kind < static_cast<std::uint8_t>(RecordKind::call) || kind > static_cast<std::uint8_t>(RecordKind::clients))
    return malformed();
  const auto name = get<std::uint16_t>(stream, kPrincipalBytesAt);
  const std::size_t name_bytes = name == RecordHead::kUnnamed ? 0 : name;
  const std::size_t body_bytes = get<std::uint32_t>(stream, kBodyBytesAt);
  if (body_bytes > body_bytes_max) return malformed();
  const std::size_t bytes = kRecordHeadBytes + name_bytes + body_bytes + 1;
  if (stream.size() < bytes) return read;
  if (stream[bytes - 1] != '\0') return malformed();
  read.record.head.kind = static_cast<RecordKind>(kind);
  if (name != RecordHead::kUnnamed) read.record.head.principal = stream.substr(kRecordHeadBytes, name_bytes);
  read.record.head.left_ms = get<std::uint32_t>(stream, kLeftAt);
  read.record.head.form = form_of(stream[kFormAt]);
  read.record.body = stream.substr(kRecordHeadBytes + name_bytes, body_bytes);
  read.bytes = bytes;
  read.status = RecordRead::Status::complete;
  return read;
}

}  // namespace wirecall::cluster
