/* Rival: PETSc. Solves or multiplies with the matrix in FILE (PETSc's binary form, followed by b), writes x or y to ANSWER in that
 * form, and prints JSON.
 *
 *   mpicc -O3 petsc.c -lpetsc -o petsc
 *   mpirun -n 2 petsc FILE ANSWER -mat_type aij -pc_type jacobi    one solve by KSPCG to ||b - A x|| <= ksp_rtol ||b||
 *   mpirun -n 2 petsc FILE ANSWER -mat_type baij -products         products y = A b in a row, as many as fit into a second
 *   petsc -version_only
 */
#include <petscksp.h>

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

static PetscErrorCode now(double *seconds)
{
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  *seconds = MPI_Wtime();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode products(Mat A, Vec b, Vec y, int rank)
{
  double start, end;
  int    shape[2]; /* products of a sample, and samples */

  PetscFunctionBeginUser;
  PetscCall(MatMult(A, b, y));
  PetscCall(now(&start));
  PetscCall(MatMult(A, b, y));
  PetscCall(now(&end));
  shape[0] = PetscMax(1, PetscMin(1000, (int)(0.1 / PetscMax(end - start, 1e-7))));
  shape[1] = PetscMax(1, PetscMin(10, (int)(1 / PetscMax(end - start, 1e-7))));
  PetscCallMPI(MPI_Bcast(shape, 2, MPI_INT, 0, PETSC_COMM_WORLD));
  if (rank == 0) printf("{\"each\": %d, \"seconds\": [", shape[0]);
  for (int sample = 0; sample < shape[1]; sample++) {
    PetscCall(now(&start));
    for (int product = 0; product < shape[0]; product++) PetscCall(MatMult(A, b, y));
    PetscCall(now(&end));
    if (rank == 0) printf("%s%.9g", sample ? ", " : "", (end - start) / shape[0]);
  }
  if (rank == 0) printf("]}\n");
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

  if (argc == 2) {
    printf("{\"version\": \"%d.%d.%d\"}\n", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
    return 0;
  }
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-products", &only_products));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, argv[1], FILE_MODE_READ, &file));
  PetscCall(MatLoad(A, file));
#if PETSC_VERSION_GE(3, 19, 0) /* older versions refuse it for blocks */
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
#endif
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecLoad(b, file));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(only_products ? products(A, b, x, rank) : solve(A, x, b, r, rank));
  PetscCall(PetscViewerDestroy(&file));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, argv[2], FILE_MODE_WRITE, &file));
  PetscCall(VecView(x, file));
  PetscCall(PetscViewerDestroy(&file));
  PetscCall(PetscFinalize());
  return 0;
}
