// See service.hpp: services from their descriptors.
#include "wirecall/protobuf/service.hpp"

#include <stdexcept>

#include "protobuf/schema.hpp"
#include "protobuf/served_call.hpp"
#include "protobuf/whole_params.hpp"

namespace wirecall::protobuf {

using google::protobuf::Descriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

bool detail::read_whole(std::string_view params, Reader& reader, google::protobuf::Message& out) {
  return read_params(params, reader, out);
}

static std::vector<Param> params_of(const detail::MethodTypes& types) {
  return {types.names.begin(), types.names.end()};
}

Service::Service(Registry& registry, std::string_view full_name)
    : registry_(&registry),
      service_(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string{full_name})) {
  if (service_ == nullptr)
    throw std::invalid_argument{"wirecall: no .proto with the service " + std::string{full_name} +
                                " is linked into this program"};
  for (int i = 0; i < service_->method_count(); ++i) registry.require(service_->method(i)->full_name());
}

static void require_type(const MethodDescriptor& method, const char* verb, const Descriptor& wanted,
                         const Descriptor& given) {
  if (&wanted == &given) return;
  throw std::invalid_argument{"wirecall: " + method.full_name() + ' ' + verb + ' ' + wanted.full_name() + ", not " +
                              given.full_name()};
}

Service::Types Service::types_of(std::string_view name, const Descriptor& request, const Descriptor& response,
                                 Streams streams) const {
  const MethodDescriptor* const method = service_->FindMethodByName(std::string{name});
  if (method == nullptr)
    throw std::invalid_argument{"wirecall: " + service_->full_name() + " has no method " + std::string{name}};
  require_type(*method, "takes", *method->input_type(), request);
  require_type(*method, "returns", *method->output_type(), response);
  const auto require = [&](bool as_given, const char* words) {
    if (!as_given) throw std::invalid_argument{"wirecall: " + method->full_name() + words};
  };
  require(method->client_streaming() == streams.input,
          streams.input ? " takes one message, not an InputStream" : " takes an InputStream of messages");
  require(method->server_streaming() == streams.output,
          streams.output ? " returns one message, not a Stream" : " returns a Stream of messages");
  return std::make_shared<detail::MethodTypes>(*method, streams.input);
}

Method& Service::add_bound(detail::MethodTypes& types, wirecall::detail::Binding binding) {
  types.signature.asynchronous = binding.signature->asynchronous;
  types.signature.stream = binding.signature->stream;
  types.signature.input = binding.signature->input;
  binding.signature = &types.signature;
  return registry_->add(types.method.full_name(), params_of(types), std::move(binding));
}

void add_service(Registry& registry, google::protobuf::Service& service, ServiceOptions options) {
  const ServiceDescriptor& descriptor = *service.GetDescriptor();
  for (int i = 0; i < descriptor.method_count(); ++i) {
    auto served = std::make_unique<ServedMethod>(service, *descriptor.method(i), options.blocking);
    const wirecall::detail::Signature& signature = served->types.signature;
    std::vector<Param> params = params_of(served->types);
    registry.add(descriptor.method(i)->full_name(), std::move(params),
                 {{served.release(), [](void* stored) { delete static_cast<ServedMethod*>(stored); }},
                  &ServedMethod::invoke,
                  &signature});
  }
}

}  // namespace wirecall::protobuf
