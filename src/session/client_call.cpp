// See client_call.hpp.
#include "session/client_call.hpp"

#include <utility>
#include <vector>

namespace wirecall::session {

void CallTable::insert(ClientCall& call) {
  if (2 * size_ >= places_.size()) {
    // Ids that had different places still have: the places of a larger table say more of the id.
    std::vector<ClientCall*> places(2 * places_.size());
    for (ClientCall* other : places_) {
      if (other != nullptr) places[other->id & (places.size() - 1)] = other;
    }
    places_ = std::move(places);
  }
  do {
    ++last_id_;
  } while (places_[last_id_ & (places_.size() - 1)] != nullptr);
  call.id = last_id_;
  places_[last_id_ & (places_.size() - 1)] = &call;
  ++size_;
}

}  // namespace wirecall::session
