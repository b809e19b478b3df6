// See context.hpp.
#include "broker/context.hpp"

#include "wirecall/reflect.hpp"

namespace wirecall::broker {

std::string from_member(std::string_view name) { return R"("from":)" + to_json(name) + ","; }

void BrokerContext::refuse(Call& call, std::string_view method, const Error& error) {
  log.failed(method, &caller_of(call), error);
  call.error(error);
}

}  // namespace wirecall::broker
