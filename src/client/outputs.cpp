// See wirecall/detail/outputs.hpp.
#include "wirecall/detail/outputs.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace wirecall::detail {

bool decode_in_order(Reader& reader, std::span<const DecodeFunction> decode, void* const* at) {
  if (!reader.begin_object()) return false;
  std::vector<std::string> names;
  for (std::string_view name; reader.next_member(name);) {
    const std::string& own = names.emplace_back(name);
    const std::size_t next = names.size() - 1;
    if (std::ranges::find(names.begin(), names.end() - 1, own) != names.end() - 1) {
      reader.fail("one value");
    } else if (next == decode.size()) {
      reader.fail("nothing");
    } else if (decode[next](reader, at[next])) {
      continue;
    }
    return reader.failed_at(own);
  }
  return names.size() == decode.size() || reader.fail_missing("one more member");
}

}  // namespace wirecall::detail
