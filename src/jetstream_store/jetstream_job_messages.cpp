// See jetstream_job_messages.hpp.
#include "jetstream_store/jetstream_job_messages.hpp"

#include <algorithm>

#include "base/dotted_name.hpp"
#include "cluster/subjects.hpp"
#include "jetstream_store/jetstream_answers.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

JobSubjects::JobSubjects(const std::string& realm)
    : prefix("wc." + realm + ".d."),
      jobs("wirecall_" + realm + "_jobs"),
      trials("wirecall_" + realm + "_trials"),
      results("wirecall_" + realm + "_results") {}

std::string JobSubjects::job(std::string_view principal, std::size_t params_bytes, std::string_view method) const {
  return prefix + "jobs." + token_of(principal) + '.' + std::to_string(size_class(params_bytes)) + '.' +
         cluster::subject_of_name(method);
}

std::string JobSubjects::trial(const durable::Job& job) const {
  return prefix + "trials." + token_of(job.principal) + '.' + std::to_string(job.id) + '.' +
         cluster::subject_of_name(job.method);
}

std::string JobSubjects::buried(const durable::Job& job) const {
  return prefix + "buried." + token_of(job.principal) + '.' + std::to_string(size_class(job.params.size())) + '.' +
         std::to_string(job.id) + '.' + cluster::subject_of_name(job.method);
}

std::string JobSubjects::result(const durable::Job& job) const {
  return prefix + "results." + token_of(job.principal) + '.' + std::to_string(job.id) + '.' +
         cluster::subject_of_name(job.method);
}

std::string JobSubjects::trials_of(std::uint64_t id) const { return prefix + "trials.*." + std::to_string(id) + ".>"; }

std::string JobSubjects::buried_of(std::uint64_t id) const {
  return prefix + "buried.*.*." + std::to_string(id) + ".>";
}

std::string JobSubjects::results_of(std::uint64_t id) const {
  return prefix + "results.*." + std::to_string(id) + ".>";
}

std::optional<JobSubject> job_subject(std::string_view subject, std::string_view prefix) {
  if (!subject.starts_with(prefix)) return std::nullopt;
  std::string_view rest = subject.substr(prefix.size());
  JobSubject read{.kind = take_word(rest), .principal = take_word(rest), .bytes = 0, .id = 0, .method = {}};
  const bool is_message = read.kind == "jobs";
  if (is_message || read.kind == "buried") read.bytes = to_number(take_word(rest));
  if (!is_message) read.id = to_number(take_word(rest));
  auto method = cluster::name_of_subject(rest);
  if (!method) return std::nullopt;
  read.method = *std::move(method);
  return read;
}

static std::string_view first_line_of(std::string_view& data) noexcept {
  const std::size_t end = data.find('\n');
  const std::string_view line = data.substr(0, end);
  data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
  return line;
}

std::optional<JobMessage> read_job(std::string_view data) {
  auto head = from_json<JobHead>(first_line_of(data));
  if (!head || !are_params(data)) return std::nullopt;
  return JobMessage{.head = *std::move(head), .params = data};
}

JobRecord record_of(const durable::Job& job, std::uint64_t seq) {
  return {.seq = seq,
          .deliveries = job.deliveries,
          .given = 0,
          .running = false,
          .principal = job.principal,
          .max_deliver = job.max_deliver,
          .timeout_ms = job.timeout_ms,
          .at_ms = job.at_ms,
          .params_bytes = 0};
}

std::optional<JobRecord> read_record(const Value& answer, durable::Job& job) {
  const StoredMessage message = stored_message(answer);
  std::string_view data = message.data;
  const auto record = from_json<JobRecord>(first_line_of(data));
  if (!record) return std::nullopt;
  const std::string_view params = data.substr(0, std::min<std::uint64_t>(record->params_bytes, data.size()));
  data.remove_prefix(params.size());
  if (!are_params(params) || !is_json(data)) return std::nullopt;
  job.deliveries = record->deliveries + (record->running ? 1 : 0);
  job.max_deliver = record->max_deliver;
  job.timeout_ms = record->timeout_ms;
  job.at_ms = record->at_ms;
  job.principal = record->principal;
  job.params = params;
  job.result = data;
  return *record;
}

}  // namespace wirecall::jetstream_store
