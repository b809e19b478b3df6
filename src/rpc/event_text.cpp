// See event_text.hpp.
#include "rpc/event_text.hpp"

#include "codec/transcode.hpp"
#include "message/call_text.hpp"
#include "message/transcoder.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {

Buffer event_of(std::string_view topic, std::string_view params) {
  Buffer text;
  message::begin_call(text, wirecall::to_json(topic), params);
  text.push_back('}');
  return text;
}

Buffer event_of(LoopCodecs& codecs, std::string_view topic, EncodedText params) {
  if (params.encoding == Encoding::json) return event_of(topic, params.text);
  Buffer text;
  codecs.native(params.encoding).append_event(text, topic, params.text);
  return text;
}

struct EventText::Forms {
  struct Form {
    Encoding encoding;
    Buffer text;  // empty where it has no form
  };
  Buffer line;  // empty as long as nobody has asked
  std::deque<Form> transcoded;
};

void EventText::DropForms::operator()(Forms* forms) const noexcept { delete forms; }

EventText::Forms& EventText::forms() {
  if (!forms_) forms_.reset(new Forms);
  return *forms_;
}

std::size_t EventText::forms_bytes() const noexcept {
  if (!forms_) return 0;
  std::size_t bytes = forms_->line.capacity();
  for (const Forms::Form& form : forms_->transcoded) bytes += form.text.capacity();
  return bytes;
}

// As not everybody takes it.
EventText::SendResult EventText::send_form(MessageSink& sink, Encoding wanted) {
  std::string_view text = text_;
  if (wanted != encoding_) {
    text = in(wanted);
    if (text.empty()) return SendResult::no_form;
  } else if (sink.takes_lines()) {
    text = one_line();
  }
  return send(sink, text, wanted);
}

std::string_view EventText::one_line() {
  Buffer& line = forms().line;
  if (line.empty()) {
    line.append(text_);
    make_one_line(line.data(), line.data() + line.size());
  }
  return line.view();
}

std::string_view EventText::in(Encoding wanted) {
  std::deque<Forms::Form>& known = forms().transcoded;
  const auto found = std::ranges::find(known, wanted, &Forms::Form::encoding);
  if (found != known.end()) return found->text.view();
  Buffer text;
  const bool done = wanted == Encoding::json ? to_json(text) : from_json(wanted, text);
  if (!done) text.clear();
  return known.emplace_back(wanted, std::move(text)).text.view();
}

// As JSON it may nest deeper than a message may: an object of one member whose name begins with `$` is wrapped there.
bool EventText::to_json(Buffer& json) {
  message::Transcoder& transcoder = loop_context_->codecs.transcoder(encoding_);
  const bool done = transcoder.to_json(text_, *limits_, json) == message::Transcoder::Status::done;
  if (!transcoder.take_unrepresentable().empty() || !done || json.size() > limits_->max_message_size) return false;
  Received message;
  return read_message(json.padded(), *limits_, true, message).status == ScanStatus::complete;
}

// From a third encoding by way of JSON.
bool EventText::from_json(Encoding wanted, Buffer& out) {
  const std::string_view json = encoding_ == Encoding::json ? text_ : in(Encoding::json);
  if (json.empty()) return false;
  message::Transcoder& transcoder = loop_context_->codecs.transcoder(wanted);
  const bool done = transcoder.from_json(Buffer{json}.padded(), *limits_, out);
  static_cast<void>(transcoder.take_refusals());
  return done;
}

}  // namespace wirecall::rpc
