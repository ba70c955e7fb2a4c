// Thread that owns one engine, with a task queue. Promises are settled on the JavaScript thread.
//
// Rules of lifetime:
//  1. Only the JavaScript thread creates, reads or destroys a Napi value.
//  2. The ThreadSafeFunction is created referenced, unreferenced at once, and referenced only while work is pending, so that the process
//     stays alive only while there is pending work.
//  3. The thread is joined on the JavaScript thread: after it has reported its end (`stop`), or in the environment's cleanup hook, which
//     runs before the ThreadSafeFunction is destroyed.
//  4. The ThreadSafeFunction owns the EngineThread (a shared_ptr freed by its finalizer): a late call finds it alive. The Engine is
//     opened and freed by its own thread.
//  5. Exceptions never leave a task; they reject its promise.
//  6. A task holds a reference to arrays that it reads in place. The reference is released on the JavaScript thread: when the promise is
//     settled, or in the cleanup hook after the thread has been joined. The task's destructor never releases it, because it may run on
//     either thread. The same holds for the token callback and the exception that it throws.
//
// Order: tasks run in order of arrival. Adjacent sampling tasks run together, and a later task waits until they are done, so the weights
// never change during a completion. Scoring tasks neither block sampling nor wait for its end, if the engine supports this: sampling gets
// two thirds of the time, and on the CPU its steps run between the operations of one scoring task.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "binding/engine_request.h"
#include "binding/environment.h"

namespace gigpo {

// Work for the engine's thread. May check the flag, and throw Error ABORTED once the flag is set.
using Work = std::function<MakeResult(Engine& engine, const std::atomic<bool>& cancelled)>;

class EngineThread : public std::enable_shared_from_this<EngineThread> {
 public:
  // Starts the thread, which opens the engine. If opening fails, all tasks fail with that error.
  static std::shared_ptr<EngineThread> create(Napi::Env env, EngineRequest request);

  // Queues work. Like start_sampling, returns { promise, cancel() } and throws DISPOSED after `stop`. `read`: object whose arrays the work
  // reads in place. `scores`: scoring task, which changes no state.
  Napi::Value start(Napi::Env env, Work work, const Napi::Object& read = {}, bool scores = false);
  // Queues a sampling task. `on_tokens` (may be empty) is called with the tokens since the last call: once per step, or once for several steps
  // while JavaScript is busy, which does not block sampling. Returning true ends the completion; throwing makes it fail.
  Napi::Value start_sampling(Napi::Env env, SampleRequest request, const Napi::Function& on_tokens);
  // Rejects queued tasks, lets running tasks end at their next check of the flag, and frees the engine. The promise resolves when the thread
  // has ended. A finalizer, which must not use JavaScript, only calls `request_stop`.
  Napi::Value stop(Napi::Env env);
  void request_stop();

  // Memory plan; nullopt until the engine is open.
  std::optional<MemoryPlan> plan();
  bool deterministic();
  std::shared_ptr<const GeneratorCounts> counts();

 private:
  struct Task {
    std::optional<Napi::Promise::Deferred> deferred;
    Work work;              // empty for sampling
    bool scores = false;
    Napi::ObjectReference read;
    SampleRequest request;  // only for sampling, like the next five members
    Napi::FunctionReference on_tokens;
    std::optional<Napi::Error> thrown;   // exception of on_tokens
    bool has_callback = false;           // whether there is an on_tokens callback
    std::vector<int32_t> unreported;     // tokens not yet reported; under the mutex
    std::atomic<bool> suffices = false;  // on_tokens returned true: no more tokens are needed
    std::atomic<bool> cancelled = false;
    bool queued = true;  // false once the task was taken or cancelled; under the mutex
    std::string error_code, error_message;
    MakeResult result;
    bool last = false;  // last message of the thread
  };
  using TaskPointer = std::shared_ptr<Task>;
  using Clock = std::chrono::steady_clock;

  explicit EngineThread(EngineRequest request) : request_(std::move(request)) {}

  // JavaScript thread.
  Napi::Value enqueue(Napi::Env env, TaskPointer task);
  void cancel(const TaskPointer& task);
  void report_tokens(Napi::Env env, const TaskPointer& task, std::vector<int32_t> tokens);
  void join(Napi::Env env);
  static void let_go(const std::vector<TaskPointer>& settled);
  static void keep_promise(Napi::Env env, Task& task);
  static void settle_all(Napi::Env env, Napi::Function, std::shared_ptr<EngineThread>* self, void*);
  static void clean_up(void* self);

  // Engine thread.
  void loop();
  void open();
  void take_in(std::unique_lock<std::mutex>& lock);
  TaskPointer next_task();                                  // under the mutex
  TaskPointer take_first(std::deque<TaskPointer>& from);    // under the mutex; null if the task was cancelled
  void score(const TaskPointer& task);
  bool give_way(const Task& score);
  bool sampling() const { return engine_ && engine_->sampling(); }
  void catch_up();
  void run(const TaskPointer& task);
  void sample_step();
  void end_early();
  void publish_tokens();
  void complete(std::vector<Completion> done);
  void fail(const TaskPointer& task, const char* code, const std::string& message);
  void settle(TaskPointer task);
  bool stopping();

  using Wake = Napi::TypedThreadSafeFunction<std::shared_ptr<EngineThread>, void, &EngineThread::settle_all>;

  EngineRequest request_;
  std::unique_ptr<Engine> engine_;  // engine thread only, like the next two members
  std::string open_error_code_, open_error_message_;
  Wake wake_;
  int64_t pending_ = 0;                         // JavaScript thread only, like the next member
  std::vector<Napi::Promise::Deferred> stops_;  // dispose() may be called more than once
  std::atomic<bool> interruptions_ = false;     // a running completion was cancelled or needs no more tokens

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TaskPointer> queue_;
  std::vector<TaskPointer> settled_, streams_;  // streams_: tasks with unreported tokens
  TaskPointer running_;
  bool stopping_ = false;
  std::optional<MemoryPlan> plan_;
  bool deterministic_ = false;
  std::shared_ptr<const GeneratorCounts> counts_ = std::make_shared<GeneratorCounts>();

  std::unordered_map<uint64_t, TaskPointer> sampling_;  // engine thread only, like all members below
  std::vector<std::pair<TaskPointer, int32_t>> read_;   // tokens of the current step, for tasks with a callback
  uint64_t next_id_ = 1;
  std::deque<TaskPointer> scores_;      // accepted scoring tasks that have not started
  Clock::duration owed_{};              // time that sampling has before the next part of a scoring task
  Clock::time_point scored_, sampled_;  // start of the current part of a scoring task, and end of the last sampling step

  std::thread thread_;
};

}  // namespace gigpo
