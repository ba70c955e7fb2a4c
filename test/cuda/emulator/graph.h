// CUDA graph: captured work in branches, one per stream, with waits between branches. Branches run one after another as
// far as their waits allow, the first branch first (so the others as late as possible), or last.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <thread>

#include "streams.h"

struct CUgraph_st {
  using Branch = cudaStream_t;  // its capture's name for it

  struct Node {
    std::optional<gigpo::cuda::emulator::Work> work;  // none: waits until `of` has run so many
    size_t of = 0, count = 0;
  };
  std::deque<std::vector<Node>> branches;  // the first is of the stream that the graph is launched on
  std::map<Branch, size_t> numbers;
  bool valid = true;
  std::optional<std::thread::id> only;  // thread whose calls must not disturb the capture; none: any thread
  bool relaxed = false;

  explicit CUgraph_st(Branch first) { number(first); }

  size_t number(Branch branch) {
    const auto [place, fresh] = numbers.try_emplace(branch, branches.size());
    if (fresh) branches.emplace_back();
    return place->second;
  }
  std::vector<Node>& nodes(Branch branch) { return branches[number(branch)]; }

  size_t size() const {
    size_t all = 0;
    for (const auto& branch : branches) all += branch.size();
    return all;
  }

  // Whether the first branch waits, in the end, for all that the others do.
  bool joined() const {
    std::vector<size_t> done(branches.size(), 0);
    run_until(0, branches[0].size(), done, [](size_t) {});
    for (size_t i = 0; i < branches.size(); i++)
      if (done[i] < branches[i].size()) return false;
    return true;
  }

  void run(bool first_last) const {
    std::vector<size_t> done(branches.size(), 0);
    std::vector<std::function<void()>> begun(branches.size());  // what is left of each branch's next node, where that has begun
    const auto run_node = [&](size_t branch) {
      const auto& nodes = branches[branch];
      const size_t after = done[branch];
      const auto& [run, kernel, begin] = *nodes[after - 1].work;
      const std::function<void()> rest = begun[branch] ? std::exchange(begun[branch], nullptr) : run;
      if (kernel && after < nodes.size() && nodes[after].work && nodes[after].work->begin) begun[branch] = nodes[after].work->begin();
      rest();
    };
    for (size_t i = 0; i < branches.size(); i++) {
      const size_t branch = first_last ? branches.size() - 1 - i : i;
      run_until(branch, branches[branch].size(), done, run_node);
    }
  }

 private:
  template <class Run>
  void run_until(size_t branch, size_t count, std::vector<size_t>& done, const Run& run) const {
    while (done[branch] < count) {
      const Node& node = branches[branch][done[branch]++];
      if (node.work) run(branch);
      else run_until(node.of, node.count, done, run);
    }
  }
};
