// What JetStreamJobs keeps of jobs, as messages: their streams and subjects, and what the messages say. All of a job's
// subjects name its principal by a token, so that what belongs to one is found without looking at others'. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "durable/store.hpp"
#include "wirecall/value.hpp"

namespace wirecall::jetstream_store {

/// The names of streams and subjects of a realm. A method stands for itself, and `*` for any word.
class JobSubjects {
 public:
  explicit JobSubjects(const std::string& realm);

  /// Of a message of a job that waits or runs.
  [[nodiscard]] std::string job(std::string_view principal, std::size_t params_bytes, std::string_view method) const;
  /// Of what is kept beside it.
  [[nodiscard]] std::string trial(const durable::Job& job) const;
  [[nodiscard]] std::string buried(const durable::Job& job) const;
  [[nodiscard]] std::string result(const durable::Job& job) const;
  /// Patterns: of one job, whoever has pushed it.
  [[nodiscard]] std::string trials_of(std::uint64_t id) const;
  [[nodiscard]] std::string buried_of(std::uint64_t id) const;
  [[nodiscard]] std::string results_of(std::uint64_t id) const;

  const std::string prefix;  ///< of all subjects, with a dot at the end
  const std::string jobs;    ///< streams: jobs that wait or run,
  const std::string trials;  ///< how often some were tried, and dead ones,
  const std::string results;
};

/// What a subject tells.
struct JobSubject {
  std::string_view kind;
  std::string_view principal;  ///< token
  std::uint64_t bytes = 0;     ///< of params; of one that waits, runs or is dead
  std::uint64_t id = 0;        ///< of one beside the message
  std::string method;
};
/// Nothing for one that is none of a job's. `prefix` is JobSubjects's.
[[nodiscard]] std::optional<JobSubject> job_subject(std::string_view subject, std::string_view prefix);

/// The first line of a job's message; its params are behind it.
struct JobHead {
  std::optional<std::uint64_t> id;  ///< of one that was dead; else the number of the message
  std::string principal;
  std::uint32_t max_deliver = 0;
  std::uint32_t timeout_ms = 0;
  std::uint64_t delay_ms = 0;
};
struct JobMessage {
  JobHead head;
  std::string_view params;  ///< of the data
};
/// Nothing for data that are no job's.
[[nodiscard]] std::optional<JobMessage> read_job(std::string_view data);

/// The first line of what is kept of a job beside its message; behind it are its params, where it is dead, and its
/// result or last error.
struct JobRecord {
  std::uint64_t seq = 0;  ///< of the message
  std::uint32_t deliveries = 0;
  std::uint32_t given = 0;  ///< how often the message had been given then
  bool running = false;
  std::string principal;
  std::uint32_t max_deliver = 0;
  std::uint32_t timeout_ms = 0;
  std::int64_t at_ms = 0;
  std::uint64_t params_bytes = 0;
};
[[nodiscard]] JobRecord record_of(const durable::Job& job, std::uint64_t seq);
/// What JetStream's answer has of the job that is kept beside its message, which goes into `job`.
[[nodiscard]] std::optional<JobRecord> read_record(const Value& answer, durable::Job& job);

}  // namespace wirecall::jetstream_store
