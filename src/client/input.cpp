// See input.hpp.
#include "client/input.hpp"

#include "base/decimal.hpp"
#include "client/stream.hpp"
#include "message/call_text.hpp"
#include "message/own_error.hpp"

namespace wirecall::net {

ClientInput::ClientInput(ClientCore& core, std::unique_ptr<detail::InputSource> source)
    : core_(core), source_(std::move(source)), writer_(core.shared().codec().writer()) {}

void ClientInput::close() noexcept {
  std::unique_lock lock{source_mutex_};
  source_.reset();
  const bool posted = posted_;
  lock.unlock();
  if (posted) core_.driver().run_posted();
}

void ClientInput::grant(ClientConnection& connection, ClientCall& call, std::uint64_t more) {
  const std::lock_guard lock{source_mutex_};
  connection_ = &connection;
  call_ = &call;
  credit_ = more > ~std::uint64_t{0} - credit_ ? ~std::uint64_t{0} : credit_ + more;
  send(connection, call);
}

void ClientInput::resume(ClientConnection& connection, ClientCall& call) {
  const std::lock_guard lock{source_mutex_};
  send(connection, call);
}

void ClientInput::run(std::shared_ptr<detail::Executor::Continuation> work) noexcept {
  if (core_.driver().on_driver()) return work->resume();
  executor()->post(std::move(work));
  posted_ = true;
}

std::function<void()> ClientInput::waker() {
  return [input = weak_from_this()] {
    if (const std::shared_ptr<ClientInput> still = input.lock()) still->wake();
  };
}

void ClientInput::wake() {
  const std::lock_guard lock{source_mutex_};
  if (source_ == nullptr) return;  // and the call may be another's by now
  {
    const Lock client = core_.driver().lock();
    if (!is_of(*connection_, *call_)) return;
  }
  send(*connection_, *call_);
}

bool ClientInput::is_of(const ClientConnection& connection, const ClientCall& call) const noexcept {
  return call.input.get() == this && call.state == CallState::sent && call.connection == &connection;
}

// Where the connection takes no more, `resume` goes on; also where the last item has to leave first, since a source
// that blocks keeps the loop from sending it.
void ClientInput::send(ClientConnection& connection, ClientCall& call) {
  while (source_ != nullptr && credit_ != 0 && connection.sink->writable()) {
    if (connection.taken_bytes() < written_ && source_->may_block()) return connection.session->await_writable();
    Next next = Next::none;
    try {
      next = make_next();
    } catch (const Error& error) {
      return fail(connection, call, error);
    } catch (const std::exception& error) {
      return fail(connection, call,
                  Error{ErrorCode::internal_error, std::string{"the input of the call failed: "} + error.what()});
    } catch (...) {
      return fail(connection, call, Error{ErrorCode::internal_error, "the input of the call failed"});
    }
    if (next == Next::none) return;  // until `wake`
    if (writer_->failed())
      return fail(connection, call,
                  Error{ErrorCode::invalid_params, "an item of the input cannot be encoded: " + writer_->failure()});
    if (write(connection, call, next == Next::item) == Written::no) return source_.reset();
    if (next == Next::end) source_.reset();
  }
}

ClientInput::Next ClientInput::make_next() {
  value_.clear();
  writer_->reset(value_);
  return source_->next(*writer_, *this);
}

ClientInput::Written ClientInput::write(ClientConnection& connection, ClientCall& call, bool item) {
  const Lock lock = core_.driver().lock();
  if (!is_of(connection, call)) return Written::no;
  const MessageForm form = item ? core_.shared().form : MessageForm::text(core_.shared().form.sent);
  rpc::OutgoingMessage message{*connection.sink};
  append(message.text(), form, call.id_json(), item);
  message.close_compact_as(form);
  begun_ = true;
  ++sequence_;
  if (item) --credit_;
  written_ = connection.written_bytes();
  connection.unattributed.add(1, written_);
  // As of a stream of results, the time is for each item, unless the whole has one.
  if (!call.own_timeout && call.stream == nullptr)
    call.deadline = std::max(call.deadline, core_.shared().loop.now() + call.timeout);
  return Written::yes;
}

void ClientInput::append(Buffer& out, MessageForm form, std::string_view id_json, bool item) const {
  if (form.natively) {
    message::NativeTranscoder& native = core_.shared().loop_context.codecs.native(form.sent);
    native.begin_item(out, true, id_json);
    native.append_item_number(out, sequence_);
    return out.append(value_.view());
  }
  message::begin_call(out, R"("rpc.item")", R"({"id":)");
  out.append(id_json);
  out.append(R"(,"seq":)");
  append_number(out, sequence_);
  out.append(item ? R"(,"value":)" : R"(,"end":true)");
  if (item) out.append(value_.view());
  out.append("}}");
}

// The server is told that nobody waits for the call any more.
void ClientInput::fail(ClientConnection& connection, ClientCall& call, Error error) noexcept {
  source_.reset();
  const Lock lock = core_.driver().lock();
  if (!is_of(connection, call)) return;
  core_.calls().withdraw(call);
  core_.calls().fail(call, std::move(error), detail::ErrorClass::local_error);
}

}  // namespace wirecall::net
