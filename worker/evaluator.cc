#include "worker/evaluator.h"
