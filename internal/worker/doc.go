// Package worker only holds the tests of all workers together: on a real database and a real store, with real files of ffmpeg, each job
// done directly. The workers have a folder each, one kind of job in it; what they share is in settle.
package worker
