// What a request that is read in one pass says of packed params, against what a reader finds there. Pure.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fuzz/texts.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace fuzz {

inline void check_packed(const wirecall::Received& request, const wirecall::Codec& codec, std::string_view input) {
  if (!request.has(wirecall::Member::params) || !request.params_packed) return;
  const std::unique_ptr<wirecall::Reader> reader = codec.reader();
  reader->reset(request.params());
  std::span<const std::byte> data;
  require(reader->begin_array() && reader->next_element() && reader->read_own_form(wirecall::kPackedExtension, data) &&
              !reader->next_element(),
          "packed params are something else", input);
  require(reinterpret_cast<const char*>(data.data()) == request.packed.data && data.size() == request.packed.size,
          "another packed value", input);
}

}  // namespace fuzz
