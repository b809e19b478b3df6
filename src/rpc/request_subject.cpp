// See request_subject.hpp.
#include "rpc/request_subject.hpp"

#include <algorithm>

#include "message/message_codec.hpp"

namespace wirecall::rpc {

constexpr std::size_t kReadMax = 4096;
// The earlier ones count more.
constexpr std::array<std::string_view, 5> kNames{"topic", "method", "methods", "pattern", "client"};
// rpc.register has an array of objects as its `methods`.
constexpr int kDepthMax = 3;

static std::string subject_of(EncodedText value, int depth) {
  const std::unique_ptr<Reader> reader = message::codec_of(value.encoding).values().reader();
  reader->reset(value.text);
  std::string_view text;
  const auto subject_here = [&]() -> std::string {
    if (reader->kind() == ValueKind::string) return reader->read_string(text) ? std::string{text} : std::string{};
    const std::string_view nested = reader->skip();
    return depth != kDepthMax && !nested.empty() ? subject_of({nested, value.encoding}, depth + 1) : std::string{};
  };
  std::string subject;
  if (reader->kind() == ValueKind::array) {
    static_cast<void>(reader->begin_array());
    if (reader->next_element()) subject = subject_here();
  } else if (reader->kind() == ValueKind::object) {
    static_cast<void>(reader->begin_object());
    auto best = kNames.end();
    for (std::string_view name; reader->next_member(name);) {
      const auto* const known = std::ranges::find(kNames, name);
      if (known >= best) {
        static_cast<void>(reader->skip());
      } else if (std::string found = subject_here(); !found.empty()) {
        best = known;
        subject = std::move(found);
      }
    }
  }
  return subject;
}

std::string subject_of(EncodedText params) {
  if (params.empty() || params.text.size() > kReadMax) return {};
  return subject_of(params, 1);
}

}  // namespace wirecall::rpc
