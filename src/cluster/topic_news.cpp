// See topic_news.hpp.
#include "cluster/topic_news.hpp"

#include "base/dotted_name.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cluster {

constexpr std::uint32_t kTopicNewsDepth = 8;

void TopicNews::add(std::string_view pattern, std::string_view group, bool there) {
  std::string& list = there ? set_ : gone_;
  if (!list.empty()) list += ',';
  list += '[' + to_json(pattern) + ',' + to_json(group) + ']';
}

void TopicNews::write(Buffer& out) const {
  out.append(R"({"set":[)");
  out.append(set_);
  out.append(R"(],"gone":[)");
  out.append(gone_);
  out.append("]}");
}

// One subscription; false for one that is none.
static bool read_subscription(Reader& reader, bool there, const TopicHandler& handler) {
  std::string_view text;
  if (!reader.begin_array() || !reader.next_element() || !reader.read_string(text)) return false;
  const std::string pattern{text};
  if (!reader.next_element() || !reader.read_string(text)) return false;
  const std::string group{text};
  if (reader.next_element() || !is_pattern(pattern) || group.size() > kNameBytesMax) return false;
  handler(pattern, group, there);
  return true;
}

bool read_topic_news(std::string_view json, const Codec& codec, const TopicHandler& handler) {
  const Scan scan = codec.scan(json, kTopicNewsDepth);
  if (scan.status != ScanStatus::complete || scan.offset != json.size()) return false;
  const std::unique_ptr<Reader> reader = codec.reader();
  reader->reset(json);
  if (!reader->begin_object()) return false;
  for (std::string_view name; reader->next_member(name);) {
    const bool set = name == "set";
    if (!set && name != "gone") {
      static_cast<void>(reader->skip());
      continue;
    }
    if (!reader->begin_array()) return false;
    while (reader->next_element()) {
      if (!read_subscription(*reader, set, handler)) return false;
    }
  }
  return true;
}

}  // namespace wirecall::cluster
