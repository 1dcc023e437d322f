// Package worker only holds the tests that are about several workers. Each kind of job has a folder, with its tests.
// What the workers share is in assetfile and attempt, what their tests share in workertest.
package worker
