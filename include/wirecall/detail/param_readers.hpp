// ParamReaders: what decodes the params of a call, and the defaults of those that are not given. Strings decoded by it
// may be views into it, so they last until it decodes the next ones. The thread's own serves calls that are done before
// the next one comes; a call that takes long, or that outlives its frame, has one of its own.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "wirecall/codec.hpp"

namespace wirecall::detail {

struct ParamReaders {
  std::unique_ptr<Reader> reader;
  std::vector<std::unique_ptr<Reader>> defaults;  ///< by parameter; made when first needed

  [[nodiscard]] Reader& of_default(std::size_t index) {
    if (defaults.size() <= index) defaults.resize(index + 1);
    if (!defaults[index]) defaults[index] = json_codec().reader();
    return *defaults[index];
  }
};

}  // namespace wirecall::detail
