// See channel.hpp.
#include "wirecall/protobuf/channel.hpp"

#include <new>
#include <stdexcept>

#include "protobuf/whole_params.hpp"
#include "wirecall/detail/loop_thread.hpp"
#include "wirecall/protobuf/controller.hpp"

namespace wirecall::protobuf {

using wirecall::detail::Answer;

const std::string& detail::method_name(const google::protobuf::ServiceDescriptor& service, std::string_view name) {
  const google::protobuf::MethodDescriptor* method = service.FindMethodByName(std::string{name});
  // protoc appends an underscore to words of C++.
  if (method == nullptr && name.ends_with('_'))
    method = service.FindMethodByName(std::string{name.substr(0, name.size() - 1)});
  if (method == nullptr)
    throw std::logic_error{"wirecall: " + service.full_name() + " has no method " + std::string{name}};
  return method->full_name();
}

namespace {

void set_failed(google::protobuf::RpcController* controller, Error error) {
  if (auto* const own = dynamic_cast<Controller*>(controller)) return own->fail(std::move(error));
  if (controller != nullptr) controller->SetFailed(error.message());
}

// Reads the response. False where `answer` is an error, or has become one.
bool read_response(Answer& answer, google::protobuf::Message& response) {
  if (!answer.ok()) return false;
  try {
    if (read(answer.reader(), response)) return true;
    answer.refuse(response.GetDescriptor()->full_name());
  } catch (const std::bad_alloc&) {
    answer.refuse();
  }
  response.Clear();
  return false;
}

}  // namespace

void Channel::CallMethod(const google::protobuf::MethodDescriptor* method, google::protobuf::RpcController* controller,
                         const google::protobuf::Message* request, google::protobuf::Message* response,
                         google::protobuf::Closure* done) {
  response->Clear();
  wirecall::detail::OutgoingCall call = client_->outgoing(method->full_name());
  detail::write_params(call.params(), *request, options_.as_bytes);
  if (auto* const own = dynamic_cast<Controller*>(controller)) own->apply_to(call);
  if (done != nullptr) {
    try {
      return call.start([controller, response, done](Answer& answer) {
        if (!read_response(answer, *response)) set_failed(controller, std::move(answer.error()));
        done->Run();
      });
    } catch (const std::exception& failure) {
      set_failed(controller, Error{ErrorCode::internal_error, failure.what()});
    }
    return done->Run();
  }
  if (wirecall::detail::on_loop_thread()) {
    LocalError error{ErrorCode::internal_error,
                     method->full_name() +
                         " was called without a closure on the thread of a loop, which it would block; give it one, "
                         "co_await Channel::call, or serve with ServiceOptions::blocking"};
    if (controller == nullptr) throw error;
    return set_failed(controller, std::move(error));
  }
  Answer answer = call.wait();
  if (read_response(answer, *response)) return;
  if (controller == nullptr) answer.throw_error();
  set_failed(controller, std::move(answer.error()));
}

}  // namespace wirecall::protobuf
