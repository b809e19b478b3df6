// What a request says of its own handling, read from the members of its envelope. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rpc/dispatcher.hpp"

namespace wirecall::rpc {

/// A number >= 0 of milliseconds, rounded up to whole ones; the largest value stands for all beyond it.
[[nodiscard]] std::uint32_t milliseconds_of(std::string_view number) noexcept;

/// An integer >= 0; nothing for any other value.
[[nodiscard]] std::optional<std::uint64_t> read_count(const LoopContext& loop_context, std::string_view value);

}  // namespace wirecall::rpc
