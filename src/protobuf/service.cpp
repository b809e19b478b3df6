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

detail::ServiceTypes::ServiceTypes(std::string_view full_name)
    : service_(google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string{full_name})) {
  if (service_ == nullptr)
    throw std::invalid_argument{"wirecall: no .proto with the service " + std::string{full_name} +
                                " is linked into this program"};
}

std::vector<std::string> detail::ServiceTypes::method_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < service_->method_count(); ++i) names.push_back(service_->method(i)->full_name());
  return names;
}

Service::Service(Registry& registry, std::string_view full_name) : registry_(&registry), types_(full_name) {
  for (std::string& name : types_.method_names()) registry.require(std::move(name));
}

static void require_type(const MethodDescriptor& method, const char* verb, const Descriptor& wanted,
                         const Descriptor& given) {
  if (&wanted == &given) return;
  throw std::invalid_argument{"wirecall: " + method.full_name() + ' ' + verb + ' ' + wanted.full_name() + ", not " +
                              given.full_name()};
}

detail::ServiceTypes::Types detail::ServiceTypes::types_of(std::string_view name, const Descriptor& request,
                                                           const Descriptor& response, Streams streams) const {
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

detail::ServiceMethod detail::ServiceTypes::described(MethodTypes& types, wirecall::detail::Binding binding) {
  types.signature.asynchronous = binding.signature->asynchronous;
  types.signature.stream = binding.signature->stream;
  types.signature.input = binding.signature->input;
  binding.signature = &types.signature;
  return {.name = types.method.full_name(), .params = params_of(types), .binding = std::move(binding)};
}

// ---- generated ones ----

static detail::ServiceMethod served_method(google::protobuf::Service& service, const MethodDescriptor& method,
                                           ServiceOptions options) {
  auto served = std::make_unique<ServedMethod>(service, method, options.blocking);
  const wirecall::detail::Signature* const signature = &served->types.signature;
  std::vector<Param> params = params_of(served->types);
  return {.name = method.full_name(),
          .params = std::move(params),
          .binding = {.callable = {served.release(), [](void* stored) { delete static_cast<ServedMethod*>(stored); }},
                      .invoke = &ServedMethod::invoke,
                      .signature = signature}};
}

void add_service(Registry& registry, google::protobuf::Service& service, ServiceOptions options) {
  const ServiceDescriptor& descriptor = *service.GetDescriptor();
  for (int i = 0; i < descriptor.method_count(); ++i) {
    detail::ServiceMethod method = served_method(service, *descriptor.method(i), options);
    registry.add(std::move(method.name), std::move(method.params), std::move(method.binding));
  }
}

void add_service(Client& client, google::protobuf::Service& service, ProvideOptions provided, ServiceOptions options) {
  const ServiceDescriptor& descriptor = *service.GetDescriptor();
  for (int i = 0; i < descriptor.method_count(); ++i) {
    detail::ServiceMethod method = served_method(service, *descriptor.method(i), options);
    provided.params = std::move(method.params);
    client.provide(std::move(method.name), std::move(method.binding), provided);
  }
}

}  // namespace wirecall::protobuf
