// See event_text.hpp.
#include "rpc/event_text.hpp"

#include "codec/transcode.hpp"
#include "message/call_text.hpp"
#include "message/msgpack_reply.hpp"
#include "wirecall/message.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {

Buffer event_of(std::string_view topic, std::string_view params) {
  Buffer text;
  message::begin_call(text, wirecall::to_json(topic), params);
  text.push_back('}');
  return text;
}

Buffer msgpack_event_of(std::string_view topic, std::string_view params) {
  Buffer text;
  message::append_map_head(text, params.empty() ? 2 : 3);
  text.append(message::kMsgpackMethod);
  codec::append_string(text, topic);
  if (!params.empty()) {
    text.append(message::kMsgpackParams);
    text.append(params);
  }
  return text;
}

struct EventText::Forms {
  Buffer line;        // empty as long as nobody has asked
  Buffer transcoded;  // empty where it has no form
  bool is_transcoded = false;
};

void EventText::DropForms::operator()(Forms* forms) const noexcept { delete forms; }

EventText::Forms& EventText::forms() {
  if (!forms_) forms_.reset(new Forms);
  return *forms_;
}

std::size_t EventText::forms_bytes() const noexcept {
  return forms_ ? forms_->line.capacity() + forms_->transcoded.capacity() : 0;
}

// As not everybody takes it.
EventText::SendResult EventText::send_form(MessageSink& sink, bool as_msgpack) {
  std::string_view text = text_;
  if (as_msgpack != msgpack_) {
    text = transcoded();
    if (text.empty()) return SendResult::no_form;
  } else if (sink.takes_lines()) {
    text = one_line();
  }
  return send(sink, text, as_msgpack);
}

std::string_view EventText::one_line() {
  Buffer& line = forms().line;
  if (line.empty()) {
    line.append(text_);
    make_one_line(line.data(), line.data() + line.size());
  }
  return line.view();
}

std::string_view EventText::transcoded() {
  Forms& forms = this->forms();
  if (!forms.is_transcoded) {
    const bool done = msgpack_ ? to_json(forms.transcoded) : to_msgpack(forms.transcoded);
    if (!done) forms.transcoded.clear();
    forms.is_transcoded = true;
  }
  return forms.transcoded.view();
}

// As JSON it may nest deeper than a message may: an object of one member whose name begins with `$` is wrapped there.
bool EventText::to_json(Buffer& json) {
  message::Transcoder& transcoder = loop_context_->codecs.transcoder();
  const bool done = transcoder.to_json(text_, *limits_, json) == message::Transcoder::Status::done;
  if (!transcoder.take_unrepresentable().empty() || !done || json.size() > limits_->max_message_size) return false;
  Received message;
  return read_message(json.padded(), *limits_, true, message).status == ScanStatus::complete;
}

bool EventText::to_msgpack(Buffer& msgpack) {
  Buffer padded{text_};
  const bool done = loop_context_->codecs.transcoder().to_msgpack(padded.padded(), *limits_, msgpack);
  static_cast<void>(loop_context_->codecs.transcoder().take_refusals());
  return done;
}

}  // namespace wirecall::rpc
