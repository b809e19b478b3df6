// See wirecall/detail/outputs.hpp.
#include "wirecall/detail/outputs.hpp"

namespace wirecall::detail {

bool decode_in_order(Reader& reader, std::span<const DecodeFunction> decode, void* const* at) {
  if (!reader.begin_object()) return false;
  std::size_t next = 0;
  for (std::string_view name; reader.next_member(name); ++next) {
    const std::string own{name};
    if (next == decode.size()) {
      reader.fail("nothing");
      return reader.failed_at(own);
    }
    if (!decode[next](reader, at[next])) return reader.failed_at(own);
  }
  return next == decode.size() || reader.fail_missing("one more member");
}

}  // namespace wirecall::detail
