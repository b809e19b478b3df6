// Room in a list for what is to come, so that it can be added where nothing may fail for want of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wirecall {

/// Room for `more` behind what is there. Grows by doubling, which std::vector::reserve does not.
template <class T>
void make_room(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() >= more) [[likely]]
    return;
  list.reserve(std::max(list.size() + more, 2 * list.capacity()));
}

}  // namespace wirecall
