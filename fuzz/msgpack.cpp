// MessagePack over any bytes: what the scan takes is read as a Value and as types that are told apart by trying, and
// written again; what is transcoded to JSON is JSON, comes back, and becomes the same text; and so for any JSON.
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codec/json_scan.hpp"
#include "codec/msgpack_scan.hpp"
#include "codec/transcode.hpp"
#include "fuzz/msgpack_maker.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/texts.hpp"
#include "message/msgpack_walk.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

#define FUZZ_MAKER fuzz::MsgpackMaker
#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using wirecall::Buffer;
using wirecall::Scan;
using wirecall::ScanStatus;
using wirecall::Value;

struct Leaf {
  int number = 0;
  std::optional<std::string> text;
};
struct Node {
  std::vector<std::variant<Leaf, std::map<std::string, double>, std::vector<int>>> parts;
  std::vector<std::byte> data;
};
using Anything = std::variant<bool, std::int64_t, float, std::string, std::vector<std::byte>, wirecall::Extension, Leaf,
                              Node, std::map<int, int>, std::vector<std::variant<int, std::string, std::vector<int>>>>;

/// Bytes in a heap block of exactly their size.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : bytes_(new char[bytes.size()]), size_(bytes.size()) {
    if (size_ != 0) std::memcpy(bytes_.get(), bytes.data(), size_);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return std::as_bytes(std::span{view()}); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

/// JSON that was made of MessagePack comes back, and is the same text the next time.
void comes_back(Buffer& json, std::string_view input) {
  wirecall::codec::JsonToMsgpack to_msgpack;
  wirecall::codec::MsgpackToJson to_json;
  Buffer msgpack;
  require(to_msgpack(json.padded(), msgpack).done(), "JSON that was MessagePack has no form there", input);
  const Exact exact{msgpack.view()};
  const Scan scan = wirecall::msgpack::scan(exact.view(), wirecall::kDepthMax);
  require(scan.status == ScanStatus::complete && scan.offset == exact.view().size(), "no MessagePack written", input);
  Buffer again;
  require(to_json(exact.view(), again).done(), "what came back has no form in JSON", input);
  require(again.view() == json.view(), "another text the second time", input);
}

void check_values(std::string_view value, std::string_view input) {
  const Exact exact{value};
  const auto read = wirecall::from_msgpack<Value>(exact.span());
  require(read.has_value(), "a value is no Value", input);
  const auto written = wirecall::to_msgpack(*read);
  const auto again = wirecall::from_msgpack<Value>(written);
  require(again.has_value() && wirecall::to_msgpack(*again) == written, "a Value does not come back", input);
  const auto typed = wirecall::from_msgpack<Anything>(exact.span());
  if (typed.has_value()) {
    const auto bytes = wirecall::to_msgpack(*typed);
    require(wirecall::from_msgpack<Anything>(bytes).has_value(), "a typed value does not come back", input);
  }
}

void check_json(std::string_view value, std::string_view input) {
  const Exact exact{value};
  wirecall::codec::MsgpackToJson to_json;
  Buffer json;
  const auto result = to_json(exact.view(), json);
  require(result.done() == result.why.empty(), "no reason, or one too many", input);
  if (!result.done()) return;
  const std::string_view text = json.padded();
  require(fuzz::is_whole(text, wirecall::json::scan(text, wirecall::kDepthMax)), "no JSON written", input);
  comes_back(json, input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const Exact exact{input};
  const std::uint32_t depth = wirecall::Limits{}.depth;
  const Scan scan = wirecall::msgpack::scan(exact.view(), depth);
  require(scan.offset <= input.size(), "the end is behind the end", input);
  wirecall::message::EnvelopeMembers members;
  const ScanStatus walked = wirecall::message::walk_message(exact.view(), depth, members);
  const bool whole = scan.status == ScanStatus::complete && scan.offset == input.size();
  const ScanStatus wanted = scan.status == ScanStatus::too_deep ? scan.status : ScanStatus::malformed;
  require(walked == (whole ? ScanStatus::complete : wanted), "the walk takes something else than the scan", input);
  if (scan.status == ScanStatus::complete) {
    const std::string_view value = input.substr(0, scan.offset);
    const Exact alone{value};
    require(wirecall::message::end_of(alone.view().data()) == alone.view().data() + value.size(),
            "the walk ends elsewhere", input);
    require(wirecall::msgpack::scan(Exact{value.substr(0, value.size() - 1)}.view(), depth).status ==
                ScanStatus::incomplete,
            "a part of a value is taken for one", input);
    check_values(value, input);
    check_json(value, input);
  }
  const fuzz::PaddedText text{input};
  const Scan json_scan = wirecall::json::scan(text.view(), depth);
  if (!fuzz::is_whole(text.view(), json_scan)) return 0;
  wirecall::codec::JsonToMsgpack to_msgpack;
  Buffer msgpack;
  if (to_msgpack(text.view().substr(0, json_scan.offset), msgpack).done()) check_json(msgpack.view(), input);
  return 0;
}
