// Reserves capacity in a list ahead of time, so that elements can be added where nothing may fail for want of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wirecall {

/// Reserves capacity for `more` elements. Grows by doubling, which std::vector::reserve does not.
template <class T>
void reserve_extra(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() >= more) [[likely]]
    return;
  list.reserve(std::max(list.size() + more, 2 * list.capacity()));
}

}  // namespace wirecall
