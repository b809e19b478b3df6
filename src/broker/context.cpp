// See context.hpp.
#include "broker/context.hpp"

#include "wirecall/reflect.hpp"

namespace wirecall::broker {

std::string BrokerContext::from_of(const Peer& peer) const {
  if (!settings.disclose_callers || peer.name.empty()) [[likely]]
    return {};
  return R"("from":)" + to_json(peer.name) + ",";
}

void BrokerContext::refuse(Call& call, std::string_view method, const Error& error) {
  log.failed(method, &caller_of(call), error);
  call.error(error);
}

}  // namespace wirecall::broker
