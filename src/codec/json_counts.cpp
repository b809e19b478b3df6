// See json_counts.hpp.
#include "codec/json_counts.hpp"

namespace wirecall::codec {

void JsonCounts::read(std::string_view json) {
  constexpr std::size_t kKeptMax = std::size_t{1} << 18;  // of counts from value to value: a MiB
  if (counts_.capacity() > kKeptMax) counts_ = {};
  counts_.clear();
  opened_.clear();
  next_ = 0;
  bool quoted = false;
  bool fresh = false;  // an array or object has just begun
  for (const char *p = json.data(), *const end = p + json.size(); p != end; ++p) {
    const char c = *p;
    if (quoted) {
      if (c == '\\') ++p;
      quoted = c != '"';
      continue;
    }
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (fresh && c != ']' && c != '}') counts_[opened_.back()] = 1;
    fresh = false;
    switch (c) {
      case '"': quoted = true; break;
      case '[':
      case '{':
        opened_.push_back(counts_.size());
        counts_.push_back(0);
        fresh = true;
        break;
      case ']':
      case '}': opened_.pop_back(); break;
      case ',': ++counts_[opened_.back()]; break;
      default: break;
    }
  }
}

}  // namespace wirecall::codec
