// A process that a user writes into a file: jump kernels as dense or sparse columns, exit rates shared or of each state,
// constant or piecewise in time:  Q_t(x, y) = f(t) exit(y) (F(x, y) - [x = y]),  F and exit those of the piece of t.
#pragma once

#include "diffusion/config.h"
#include "diffusion/process.h"

namespace gdds::diffusion {

// One piece of time, columns in compressed form.
struct MatrixPiece {
  double begin = 0, end = 1;
  std::vector<double> exit;           // [m]
  std::vector<std::int64_t> offsets;  // [m + 1]
  std::vector<std::int32_t> rows;
  std::vector<double> weights;
  std::vector<double> sums;  // running sums of the weights within a column, for drawing
  double fastest = 0;        // the largest exit rate
};

class MatrixProcess final : public Process {
 public:
  // From a `process` file with /matrix. A column that does not sum to one, a negative number, a state with an exit rate and
  // nowhere to go: status 3 saying where.
  MatrixProcess(const h5::Input& input, const Schedule& schedule, const VocabularyName& vocabulary);

  double clock(double t) const override;
  double time_of(double clock) const override;
  std::optional<Jump> jump(std::int32_t y, double t, TokenRandom& random) const override;
  double stays(std::int32_t y, double t) const override;
  void rates_from(std::int32_t y, double t, std::span<double> out) const override;
  void noise(const kernels::Snapshots& batch, std::span<const double> times) const override;
  std::unique_ptr<Transition> transition(double s, double t) const override;
  std::vector<double> prior() const override;
  std::string config() const override;
  std::vector<NamedArray> arrays() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

  const std::vector<MatrixPiece>& pieces() const { return pieces_; }

 private:
  const MatrixPiece& piece_at(double t) const;
  std::int32_t column_draw(const MatrixPiece& piece, std::int32_t y, double u) const;
  void read_sparse(const h5::Input& input);
  void read_dense(const h5::Input& input);
  void finish(const std::string& file);

  std::vector<MatrixPiece> pieces_;
  // As in the file.
  std::vector<double> times_, exits_, weights_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> rows_;
};

}  // namespace gdds::diffusion
