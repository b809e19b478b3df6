// What a thread has to spare for values that are read or written off the loop: readers and writers, of which each value
// has one of its own for that time, and the memory of what has been written. To make them anew would cost more than
// most values do. Thread: any; each has its own.
#pragma once

#include <cstddef>
#include <memory>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::detail {

/// A spare one, or a new one.
[[nodiscard]] std::unique_ptr<Reader> take_reader(const Codec& codec);
[[nodiscard]] std::unique_ptr<Writer> take_writer(const Codec& codec);
/// Empty, with memory or without.
[[nodiscard]] Buffer take_buffer() noexcept;
/// Keeps one of JSON for the next who takes one, if it has read a value of so few bytes that it holds little memory.
void keep_spare(std::unique_ptr<Reader> reader, std::size_t bytes) noexcept;
/// Keeps one that `codec` has made, if that is JSON's.
void keep_spare(const Codec& codec, std::unique_ptr<Writer> writer) noexcept;
/// Keeps its memory, unless that is large or there are many.
void keep_spare(Buffer buffer) noexcept;

}  // namespace wirecall::detail
