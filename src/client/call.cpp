// See call.hpp.
#include "client/call.hpp"

namespace wirecall::net {

void CallTable::insert(ClientCall& call) {
  if (2 * size_ >= slots_.size()) {
    // Ids that had different slots still have: the slots of a larger table say more of the id.
    std::vector<ClientCall*> slots(2 * slots_.size());
    for (ClientCall* other : slots_) {
      if (other != nullptr) slots[other->id & (slots.size() - 1)] = other;
    }
    slots_ = std::move(slots);
  }
  do {
    ++last_id_;
  } while (slots_[last_id_ & (slots_.size() - 1)] != nullptr);
  call.id = last_id_;
  slots_[last_id_ & (slots_.size() - 1)] = &call;
  ++size_;
}

}  // namespace wirecall::net
