// Package worker only holds the tests of all workers together: on a real database and a real store, with real files of ffmpeg, each job
// done directly. Each kind of job has a folder. What the workers share is in assetfile and attempt.
package worker
