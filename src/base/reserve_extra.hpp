// Reserves capacity in a list ahead of time, so that elements can be added where nothing may fail for want of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wirecall {

namespace detail {

// Apart from the test, which the turns of a loop make several times each.
template <class T>
[[gnu::noinline, gnu::cold]] void grow_for(std::vector<T>& list, std::size_t more) {
  list.reserve(std::max(list.size() + more, 2 * list.capacity()));
}

}  // namespace detail

/// Reserves capacity for `more` elements. Grows by doubling, which std::vector::reserve does not.
template <class T>
void reserve_extra(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() < more) [[unlikely]]
    detail::grow_for(list, more);
}

}  // namespace wirecall
