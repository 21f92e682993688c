// KEDA's definition of a ScaledObject, which the cluster of the tests gets.
module dualplane.dev/e2e/keda

go 1.24.0

require github.com/kedacore/keda/v2 v2.20.2
