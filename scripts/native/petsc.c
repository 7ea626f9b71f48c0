/* Rival: PETSc. Solves or multiplies with the matrix in FILE (PETSc's binary form, followed by b), and prints JSON.
 *
 *   mpicc -O3 petsc.c -lpetsc -o petsc
 *   mpirun -n 2 petsc FILE -mat_type aij -pc_type jacobi     one solve by KSPCG to ||b - A x|| <= 1e-8 ||b||
 *   mpirun -n 2 petsc FILE -mat_type baij -products          the fastest of the products that fit into 0.3 s
 */
#include <petscksp.h>

static PetscErrorCode now(double *seconds)
{
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  *seconds = MPI_Wtime();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode products(Mat A, Vec x, Vec y, int rank)
{
  double best = 1e9, start, end, from;
  int    going = 1;

  PetscFunctionBeginUser;
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(now(&from));
  while (going) {
    PetscCall(now(&start));
    PetscCall(MatMult(A, x, y));
    PetscCall(now(&end));
    best  = PetscMin(best, end - start);
    going = end - from < 0.3;
    PetscCallMPI(MPI_Bcast(&going, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  }
  if (rank == 0) printf("{\"ms\": %.9g}\n", 1e3 * best);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode solve(Mat A, Vec x, Vec b, Vec r, int rank)
{
  KSP       ksp;
  double    begin, ready, end;
  PetscInt  iterations;
  PetscReal norm, residual;

  PetscFunctionBeginUser;
  PetscCall(now(&begin));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-300, PETSC_DEFAULT, 100000));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(now(&ready));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(now(&end));
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &residual));
  PetscCall(VecNorm(b, NORM_2, &norm));
  if (rank == 0)
    printf("{\"seconds_setup\": %.9g, \"seconds_solve\": %.9g, \"iterations\": %d, \"residual_true\": %.6e}\n", ready - begin, end - ready,
           (int)iterations, (double)(residual / norm));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  Vec         x, b, r;
  PetscViewer file;
  PetscBool   only_products;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-products", &only_products));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, argv[1], FILE_MODE_READ, &file));
  PetscCall(MatLoad(A, file));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecLoad(b, file));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(only_products ? products(A, x, r, rank) : solve(A, x, b, r, rank));
  PetscCall(PetscFinalize());
  return 0;
}
