#include "binding/engine_thread.h"

#include "binding/convert.h"
#include "binding/environment.h"

namespace gigpo {

constexpr const char* disposed_message = "The policy was disposed before this call finished.";

std::shared_ptr<EngineThread> EngineThread::create(Napi::Env env, EngineRequest request) {
  const std::shared_ptr<EngineThread> self(new EngineThread(std::move(request)));
  auto* owner = new std::shared_ptr<EngineThread>(self);  // rule 4
  self->wake_ = Wake::New(
      env, "gigpo engine", 0, 1, owner, [](Napi::Env, void*, std::shared_ptr<EngineThread>* held) { delete held; },
      static_cast<void*>(nullptr));
  self->wake_.Unref(env);  // rule 2
  try {
    self->thread_ = std::thread([thread = self.get()] { thread->loop(); });
  } catch (const std::system_error&) {
    self->wake_.Release();
    throw Error("OUT_OF_MEMORY", "The system starts no more threads: end other work, or raise its limit (ulimit -u).");
  }
  napi_add_env_cleanup_hook(env, &EngineThread::clean_up, self.get());
  return self;
}

Napi::Value EngineThread::start(Napi::Env env, Work work, const Napi::Object& read, bool scores) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  task->scores = scores;
  if (!read.IsEmpty()) task->read = Napi::Persistent(read);
  return enqueue(env, std::move(task));
}

Napi::Value EngineThread::start_sampling(Napi::Env env, SampleRequest request, const Napi::Function& on_tokens) {
  auto task = std::make_shared<Task>();
  task->request = std::move(request);
  task->has_callback = !on_tokens.IsEmpty();
  if (task->has_callback) task->on_tokens = Napi::Persistent(on_tokens);
  return enqueue(env, std::move(task));
}

Napi::Value EngineThread::enqueue(Napi::Env env, TaskPointer task) {
  if (stopping()) throw make_error(env, "DISPOSED", "This policy is disposed: open it again.");
  task->deferred = Napi::Promise::Deferred::New(env);
  const Napi::Object started = Napi::Object::New(env);
  started.Set("promise", task->deferred->Promise());
  // Weak reference: a function that is not collected yet must keep neither the task's data nor the engine alive.
  const auto cancel = [thread = weak_from_this(), task = std::weak_ptr(task)](const Napi::CallbackInfo&) {
    const auto [self, found] = std::pair(thread.lock(), task.lock());
    if (self && found) self->cancel(found);
  };
  started.Set("cancel", Napi::Function::New(env, cancel));
  if (pending_++ == 0) wake_.Ref(env);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_one();
  return started;
}

// Cancels a task. A queued task is rejected at once; a running task ends at its next check of the flag.
void EngineThread::cancel(const TaskPointer& task) {
  task->cancelled = true;
  interruptions_ = true;
  {
    const std::lock_guard lock(mutex_);
    if (!task->queued) return;
    task->queued = false;  // the queue skips it; searching the queue for each would take too long
  }
  fail(task, "ABORTED", "Stopped.");
}

Napi::Value EngineThread::stop(Napi::Env env) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (!thread_.joinable()) {
    deferred.Resolve(env.Undefined());
    return deferred.Promise();
  }
  stops_.push_back(deferred);
  if (pending_++ == 0) wake_.Ref(env);
  request_stop();
  return deferred.Promise();
}

void EngineThread::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (running_) running_->cancelled = true;
  }
  request_.leave();
  changed_.notify_one();
}

void EngineThread::join(Napi::Env env) {
  if (!thread_.joinable()) return;
  thread_.join();
  napi_remove_env_cleanup_hook(env, &EngineThread::clean_up, this);
  wake_.Release();
}

// After the end of the thread, `settled_` contains every task that was not settled before.
void EngineThread::clean_up(void* pointer) {
  auto* self = static_cast<EngineThread*>(pointer);
  self->request_stop();
  self->thread_.join();
  let_go(self->settled_);
  self->wake_.Release();
}

void EngineThread::let_go(const std::vector<TaskPointer>& settled) {
  for (const TaskPointer& task : settled) task->read.Reset(), task->on_tokens.Reset(), task->thrown.reset();
}

void EngineThread::report_tokens(Napi::Env env, const TaskPointer& task, std::vector<int32_t> tokens) {
  if (task->cancelled || task->suffices) return;
  const Napi::HandleScope scope(env);
  try {
    const Napi::Value enough = task->on_tokens.Call({to_array(env, std::move(tokens))});
    if (!enough.IsBoolean() || !enough.As<Napi::Boolean>()) return;
    task->suffices = true;
    interruptions_ = true;
  } catch (const Napi::Error& error) {
    task->thrown = error;
    cancel(task);
  }
}

void EngineThread::keep_promise(Napi::Env env, Task& task) {
  if (task.thrown) return task.deferred->Reject(task.thrown->Value());
  try {
    task.deferred->Resolve(guarded(env, [&] {
      if (!task.error_code.empty()) throw Error(task.error_code.c_str(), task.error_message);
      return task.result(env);
    }));
  } catch (const Napi::Error& error) {
    task.deferred->Reject(error.Value());
  }
}

void EngineThread::settle_all(Napi::Env env, Napi::Function, std::shared_ptr<EngineThread>* owner, void*) {
  if (env == nullptr || owner == nullptr) return;  // the environment is being destroyed
  const std::shared_ptr<EngineThread> self = *owner;
  std::vector<TaskPointer> settled;
  std::vector<std::pair<TaskPointer, std::vector<int32_t>>> streams;
  {
    const std::lock_guard lock(self->mutex_);
    settled.swap(self->settled_);
    for (TaskPointer& task : self->streams_) streams.emplace_back(task, std::exchange(task->unreported, {}));
    self->streams_.clear();
  }
  const Napi::HandleScope scope(env);
  for (auto& [task, tokens] : streams) self->report_tokens(env, task, std::move(tokens));
  for (const TaskPointer& task : settled) {
    if (task->last) {
      self->join(env);
      for (const Napi::Promise::Deferred& stop : self->stops_) stop.Resolve(env.Undefined());
      continue;
    }
    keep_promise(env, *task);
    if (--self->pending_ == 0) self->wake_.Unref(env);
  }
  let_go(settled);
}

std::optional<MemoryPlan> EngineThread::plan() {
  const std::lock_guard lock(mutex_);
  return plan_;
}

bool EngineThread::deterministic() {
  const std::lock_guard lock(mutex_);
  return deterministic_;
}

std::shared_ptr<const GeneratorCounts> EngineThread::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void EngineThread::open() {
  try {
    OpenedEngine opened = open_engine(request_);
    engine_ = std::move(opened.engine);
    const std::lock_guard lock(mutex_);
    plan_ = opened.plan;
    deterministic_ = engine_->device().deterministic();
    counts_ = engine_->counts();
  } catch (...) {
    const auto [code, message] = current_error();
    open_error_code_ = code, open_error_message_ = message;
    request_.leave();
  }
}

void EngineThread::loop() {
  open();
  for (;;) {
    TaskPointer task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty() || !scores_.empty() || sampling(); });
      if (stopping_) break;
      take_in(lock);
      task = running_ = next_task();
    }
    if (task) {
      catch_up();
      if (task->scores) score(task);
      else run(task);
      const std::lock_guard lock(mutex_);
      running_ = nullptr;
    } else {
      end_early();
      sample_step();
    }
  }
  for (const auto& [id, task] : sampling_) fail(task, "DISPOSED", disposed_message);
  sampling_.clear();
  std::vector<TaskPointer> queued;
  {
    const std::lock_guard lock(mutex_);
    for (std::deque<TaskPointer>* from : {&scores_, &queue_}) {
      while (!from->empty()) {
        if (TaskPointer task = take_first(*from)) queued.push_back(std::move(task));
      }
    }
  }
  for (const TaskPointer& task : queued) fail(task, "DISPOSED", disposed_message);
  engine_.reset();
  auto last = std::make_shared<Task>();
  last->last = true;
  settle(std::move(last));
}

// Submits queued sampling tasks and collects scoring tasks. Neither changes state, so they need not wait for each other.
void EngineThread::take_in(std::unique_lock<std::mutex>& lock) {
  const bool overtakes = engine_ && engine_->scores_between();
  while (!queue_.empty()) {
    const TaskPointer& first = queue_.front();
    if (first->queued && first->scores && overtakes) {
      scores_.push_back(std::move(queue_.front()));
      queue_.pop_front();
      continue;
    }
    if (first->queued && first->work) return;
    const TaskPointer sample = take_first(queue_);
    if (!sample) continue;
    lock.unlock();
    run(sample);
    lock.lock();
  }
}

// Next task: a scoring task, unless sampling is due first; a task that changes state, once all earlier tasks are done.
EngineThread::TaskPointer EngineThread::next_task() {
  if (!sampling()) owed_ = {};
  while (!scores_.empty() && owed_ <= Clock::duration::zero()) {
    if (TaskPointer score = take_first(scores_)) return score;
  }
  if (!scores_.empty() || queue_.empty() || sampling()) return nullptr;
  return take_first(queue_);
}

EngineThread::TaskPointer EngineThread::take_first(std::deque<TaskPointer>& from) {
  const TaskPointer task = std::move(from.front());
  from.pop_front();
  return std::exchange(task->queued, false) ? task : nullptr;
}

// Ratio of the time of sampling to the time of scoring while both have work.
constexpr int samples_part = 2;
// Time after a sampling step during which further sampling tasks are expected, so that operations must be short.
constexpr std::chrono::seconds samples_expected{1};

// Computes a scoring task, with sampling steps between its operations. On an asynchronous device the task is computed without interruption.
void EngineThread::score(const TaskPointer& task) {
  scored_ = Clock::now();
  const bool interrupted = engine_ && engine_->scores_between() && !engine_->device().traits().asynchronous;
  if (interrupted) engine_->device().set_between([&] { return give_way(*task); });
  run(task);
  if (interrupted) engine_->device().set_between(nullptr);
  owed_ += samples_part * (Clock::now() - scored_);
}

bool EngineThread::give_way(const Task& score) {
  owed_ += samples_part * (Clock::now() - scored_);
  while (!score.cancelled) {
    {
      std::unique_lock lock(mutex_);
      if (stopping_) break;
      take_in(lock);
    }
    if (!sampling()) owed_ = {};
    if (owed_ <= Clock::duration::zero()) break;
    end_early();
    sample_step();
  }
  if (score.cancelled) throw Error("ABORTED", "Stopped.");
  catch_up();
  scored_ = Clock::now();
  return sampling() || scored_ - sampled_ < samples_expected;
}

void EngineThread::run(const TaskPointer& task) {
  if (task->cancelled) return fail(task, "ABORTED", "Stopped.");
  if (!engine_) return fail(task, open_error_code_.c_str(), open_error_message_);
  try {
    if (!task->work) {
      const uint64_t id = task->request.id = next_id_++;
      SampleRequest request = std::move(task->request);
      if (task->has_callback) request.on_token = [this, task](int32_t token) { read_.emplace_back(task, token); };
      engine_->submit(std::move(request));
      sampling_.emplace(id, task);
      return;
    }
    task->result = task->work(*engine_, task->cancelled);
    settle(task);
  } catch (...) {
    const auto [code, message] = current_error();
    if (stopping()) fail(task, "DISPOSED", disposed_message);
    else fail(task, code, message);
  }
}

// Reads the sampling step in progress before other work, which requires that no step is in progress.
void EngineThread::catch_up() {
  if (!sampling()) return;
  std::vector<Completion> done;
  engine_->catch_up(done);
  publish_tokens();
  complete(std::move(done));
}

void EngineThread::sample_step() {
  if (!sampling()) return;
  const Clock::time_point began = Clock::now();
  std::vector<Completion> done;
  try {
    engine_->sample_step(done);
    sampled_ = Clock::now();
    owed_ = std::max(owed_ - (sampled_ - began), Clock::duration::zero());
  } catch (...) {
    const auto [code, message] = current_error();
    for (const auto& [id, task] : sampling_) fail(task, code, message);
    sampling_.clear();
    read_.clear();
    return;
  }
  publish_tokens();
  complete(std::move(done));
}

void EngineThread::publish_tokens() {
  if (read_.empty()) return;
  bool first;
  {
    const std::lock_guard lock(mutex_);
    first = settled_.empty() && streams_.empty();
    for (const auto& [task, token] : read_) {
      if (task->unreported.empty()) streams_.push_back(task);
      task->unreported.push_back(token);
    }
  }
  read_.clear();
  if (first) wake_.NonBlockingCall();
}

void EngineThread::complete(std::vector<Completion> done) {
  for (Completion& completion : done) {
    const TaskPointer task = std::move(sampling_.extract(completion.id).mapped());
    if (!completion.failure.empty()) {
      fail(task, "CONSTRAINT_FAILED", completion.failure);
      continue;
    }
    task->result = [completion = std::move(completion)](Napi::Env env) mutable {
      const Napi::Object result = Napi::Object::New(env);
      result.Set("tokens", to_array(env, std::move(completion.tokens)));
      result.Set("logProbs", to_array(env, std::move(completion.log_probs)));
      result.Set("entropies", to_array(env, std::move(completion.entropies)));
      result.Set("stopped", completion.stopped);
      result.Set("topTokens", to_array(env, std::move(completion.top_tokens)));
      result.Set("topLogProbs", to_array(env, std::move(completion.top_log_probs)));
      return result;
    };
    settle(task);
  }
}

// Runs before a sampling step, so that the step can use the room of the sequences that end.
void EngineThread::end_early() {
  if (!interruptions_.exchange(false) || !engine_) return;
  std::unordered_set<uint64_t> cancelled, sufficient;
  for (const auto& [id, task] : sampling_) {
    if (task->cancelled) cancelled.insert(id), fail(task, "ABORTED", "Stopped.");
    else if (task->suffices) sufficient.insert(id);
  }
  std::erase_if(sampling_, [&](const auto& entry) { return cancelled.contains(entry.first); });
  engine_->cancel(cancelled);
  std::vector<Completion> done;
  engine_->finish(sufficient, done);
  complete(std::move(done));
}

void EngineThread::fail(const TaskPointer& task, const char* code, const std::string& message) {
  task->error_code = code;
  task->error_message = message;
  settle(task);
}

bool EngineThread::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void EngineThread::settle(TaskPointer task) {
  bool first;
  {
    const std::lock_guard lock(mutex_);
    first = settled_.empty() && streams_.empty();
    settled_.push_back(std::move(task));
  }
  if (first) wake_.NonBlockingCall();
}

}  // namespace gigpo
